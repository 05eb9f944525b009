"""Print a script that completes commands, options and files in a shell."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Mapping

from sbnet.cli import commands

EXAMPLES = """
  eval "$(sbnet completion bash)"                                     in ~/.bashrc
  eval "$(sbnet completion zsh)"                                      in ~/.zshrc, after compinit
  sbnet completion fish > ~/.config/fish/completions/sbnet.fish"""


def options(one: argparse.ArgumentParser) -> None:
    one.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(chosen: argparse.Namespace) -> int:
    known: dict[str, dict[str, str]] = {}  # each long option of each command, and what it does
    for name, parser in commands.parser()[1].items():
        words = {flag: action for action in parser._actions for flag in action.option_strings if flag[:2] == "--"}
        known[name] = {k: (a.help or "").replace("%(default)s", str(a.default)) for k, a in words.items()}
    if chosen.json:
        print(json.dumps({name: list(flags) for name, flags in known.items()}))
    elif chosen.shell == "fish":
        print(_fish(known))
    else:
        print(("autoload -U bashcompinit && bashcompinit\n" if chosen.shell == "zsh" else "") + _bash(known))
    return 0


def _bash(known: Mapping[str, Mapping[str, str]]) -> str:
    cases = "\n".join(f"    {name}) flags={shlex.quote(' '.join(flags))} ;;" for name, flags in known.items())
    return f"""_sbnet() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} flags=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(known)} --help --version" -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$word"))
  else COMPREPLY=($(compgen -f -- "$word")); fi
}}
complete -o filenames -F _sbnet sbnet"""


def _fish(known: Mapping[str, Mapping[str, str]]) -> str:
    lines = [
        f"complete -c sbnet -n __fish_use_subcommand -f -a {name} -d {_quoted(summary)}"
        for name, summary in commands.COMMANDS.items()
    ]
    lines += [
        f"complete -c sbnet -n '__fish_seen_subcommand_from {name}' -l {flag[2:]} -d {_quoted(words)}"
        for name, flags in known.items()
        for flag, words in flags.items()
    ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
