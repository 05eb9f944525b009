"""Print a script that completes commands, options and files in a shell."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator
from typing import Any

from sbnet.cli import commands

EXAMPLES = """
  eval "$(sbnet completion bash)"                                     in ~/.bashrc
  eval "$(sbnet completion zsh)"                                      in ~/.zshrc, after compinit
  sbnet completion fish > ~/.config/fish/completions/sbnet.fish"""


def options(one: argparse.ArgumentParser) -> None:
    """Which shell."""
    one.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(chosen: argparse.Namespace) -> int:
    """Print the script."""
    known = {name: list(_options(parser)) for name, parser in subcommands().items()}
    if chosen.json:
        print(json.dumps({name: [flag for flag, _ in listed] for name, listed in known.items()}))
        return 0
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[chosen.shell](known))
    return 0


def subcommands() -> dict[str, Any]:
    """The parser of each command."""
    (found,) = (a for a in commands.parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(found.choices)


def _options(parser: Any) -> Iterator[tuple[str, str]]:
    """Each long option, and what it does."""
    for action in parser._actions:
        for flag in action.option_strings:
            if flag.startswith("--"):
                yield flag, (action.help or "").replace("%(default)s", str(action.default))


def _bash(known: dict[str, list[tuple[str, str]]]) -> str:
    cases = "\n".join(
        f"    {name}) flags={shlex.quote(' '.join(flag for flag, _ in listed))} ;;" for name, listed in known.items()
    )
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


def _zsh(known: dict[str, list[tuple[str, str]]]) -> str:
    return f"autoload -U bashcompinit && bashcompinit\n{_bash(known)}"


def _fish(known: dict[str, list[tuple[str, str]]]) -> str:
    summaries = {action.dest: action.help or "" for action in _summaries()}
    lines = [
        f"complete -c sbnet -n __fish_use_subcommand -f -a {name} -d {_quoted(summaries.get(name, ''))}"
        for name in known
    ]
    for name, listed in known.items():
        lines += [
            f"complete -c sbnet -n '__fish_seen_subcommand_from {name}' -l {flag[2:]} -d {_quoted(words)}"
            for flag, words in listed
        ]
    return "\n".join(lines)


def _summaries() -> list[Any]:
    (found,) = (a for a in commands.parser()._actions if isinstance(a, argparse._SubParsersAction))
    return list(found._choices_actions)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
