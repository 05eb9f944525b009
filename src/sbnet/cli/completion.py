"""Print a script that completes commands, options, files, and the names and states of a model in a shell."""

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

_ASKING = "infer|next|certify|sensitivity"
"""Commands that take findings behind a model."""


def options(one: argparse.ArgumentParser) -> None:
    one.add_argument("shell", choices=("bash", "zsh", "fish", "names"), help="names: what the scripts ask for")
    one.add_argument("words", nargs="*", metavar="WORD", help="of names: the model, and the word so far")


def run(chosen: argparse.Namespace) -> int:
    if chosen.shell == "names":
        print("\n".join(_names(*(*chosen.words, "", "")[:2])))
        return 0
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


def _names(model: str, word: str) -> list[str]:
    """Variables with a sign of equality, or behind it the states of one, that begin with a word; of any model."""
    from sbnet.cli.models import read_model
    from sbnet.errors import SBNetError

    try:
        network = read_model(argparse.Namespace(model=model, ending=None))
    except (SBNetError, OSError):  # a shell completes what it can, and says nothing
        return []
    name, sign, _ = word.rpartition("=")
    if sign and name in network._index:
        listed = [f"{name}={state}" for state in network.states[name]]
    else:
        listed = [f"{name}=" for name in network.names]
    return [one for one in listed if one.casefold().startswith(word.casefold())]


def _bash(known: Mapping[str, Mapping[str, str]]) -> str:
    cases = "\n".join(f"    {name}) flags={shlex.quote(' '.join(flags))} ;;" for name, flags in known.items())
    return rf"""_sbnet() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} flags=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(known)} --help --version" -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$word")); return; fi
  case ${{COMP_WORDS[1]}} in {_ASKING})
    if [ "$COMP_CWORD" -gt 2 ]; then  # findings; bash parts words at =
      local before="" last=${{COMP_WORDS[COMP_CWORD-1]}} IFS=$'\n'
      if [ "$word" = "=" ]; then before="$last="; word=""
      elif [ "$last" = "=" ]; then before="${{COMP_WORDS[COMP_CWORD-2]}}="; fi
      compopt -o nospace +o filenames 2>/dev/null
      local typed=$(printf %s "$before$word" | tr -d "\"'\\\\")  # without quotes
      local found=($(sbnet completion names "${{COMP_WORDS[2]}}" "$typed" 2>/dev/null))
      [ -n "$before" ] && found=("${{found[@]#*=}}")
      [ ${{#found[@]}} -gt 0 ] && COMPREPLY=($(printf '%q\n' "${{found[@]}}")) && return
    fi ;;
  esac
  COMPREPLY=($(compgen -f -- "$word"))
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
    seen = f"__fish_seen_subcommand_from {_ASKING.replace('|', ' ')}"
    asked = "sbnet completion names (commandline -opc)[3] (commandline -ct) 2>/dev/null"
    lines.append(f"complete -c sbnet -n '{seen}; and test (count (commandline -opc)) -gt 2' -a '({asked})'")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
