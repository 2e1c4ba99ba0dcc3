import { type Invocation, UsageError } from '#cli/command';
import { COMMANDS, SHELLS } from './command-table.ts';
import { parseOptions } from './options.ts';

type Shell = (typeof SHELLS)[number];

/** `gateway completion SHELL`: prints the script that makes a shell ask `gateway __complete` for words. */
export async function completion({ args, stdout }: Invocation): Promise<number> {
  const { positionals } = parseOptions(args, COMMANDS.completion.options, ['SHELL']);
  const shell = SHELLS.find((known) => known === positionals[0]);
  if (shell === undefined) throw new UsageError(`SHELL must be one of ${SHELLS.join(', ')}`);
  stdout.write(SCRIPTS[shell]);
  return 0;
}

/**
 * Each script passes the words up to the cursor, the last of them unfinished, and offers the lines of the answer. Where
 * there are none it offers file names. The table of commands and the running gateway are known to `__complete` alone.
 */
const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `# bash completions of gateway: source <(gateway completion bash)
_gateway() {
  local line=\${COMP_LINE:0:COMP_POINT} word
  local -a words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  # Assignments may precede the command.
  while [[ \${#words[@]} -gt 1 && \${words[0]} != "$1" ]]; do words=("\${words[@]:1}"); done
  COMPREPLY=()
  while IFS= read -r word; do
    COMPREPLY+=("$word")
  done < <("\${1/#\\~/$HOME}" __complete bash -- "\${words[@]:1}" 2>/dev/null)
}
complete -o default -F _gateway gateway
`,
  zsh: `#compdef gateway
# zsh completions of gateway: source <(gateway completion zsh), or a file _gateway in a folder of fpath
_gateway() {
  local answer
  local -a found
  answer=$(\${(Q)words[1]/#\\~/$HOME} __complete zsh -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)
  found=("\${(@f)answer}")
  if [[ -n $answer ]]; then
    _describe -V gateway found
  else
    _files
  fi
}
if [[ \${funcstack[1]} == _gateway ]]; then
  _gateway "$@"
else
  compdef _gateway gateway
fi
`,
  fish: `# fish completions of gateway: gateway completion fish >~/.config/fish/completions/gateway.fish
function __gateway_complete
    set -l words (commandline -opc)
    set -l found (command $words[1] __complete fish -- $words[2..-1] (commandline -ct) 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c gateway -f -a '(__gateway_complete)'
`,
};
