package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/tracefix/tracefix/internal/batch"
	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
)

// CompletionCmd is `tracefix completion SHELL`: a script that asks tracefix itself what
// could come next.
type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish,powershell" help:"bash, zsh, fish or powershell."`
}

// scripts hand the words of the line to `tracefix complete`; where it has nothing to say,
// the shell completes file names. What it says may come from a trace that somebody else made, so no
// shell may take it for more than a word.
var scripts = map[string]string{
	"bash": `# bash: source <(tracefix completion bash), or save it as /etc/bash_completion.d/tracefix
_tracefix() {
  local word head= n=0 words=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do # --format=x comes as three words
    word=${word//[\\\"\']/}
    if ((n > 0)) && [[ $word == = || ${words[n-1]} == --*= ]]; then words[n-1]+=$word; else words[n]=$word; n=$((n + 1)); fi
  done
  [[ ${words[n-1]} == --*=* ]] && head=${words[n-1]%%=*}=
  COMPREPLY=()
  while IFS= read -r word; do
    COMPREPLY+=("$(printf %q "${word#"$head"}")")
  done < <(tracefix complete -- "${words[@]}" 2>/dev/null)
}
complete -o default -o bashdefault -F _tracefix tracefix
`,
	"zsh": `#compdef tracefix
# zsh: save it as _tracefix in a folder of $fpath, or source <(tracefix completion zsh)
_tracefix() {
  local -a found
  found=("${(@f)$(tracefix complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
if [[ $funcstack[1] == _tracefix ]]; then _tracefix "$@"; else compdef _tracefix tracefix; fi
`,
	"fish": `# fish: save it as ~/.config/fish/completions/tracefix.fish
function __tracefix_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l found (tracefix complete -- $words[2..-1] 2>/dev/null)
  if set -q found[1]
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c tracefix -f -a '(__tracefix_complete)'
`,
	"powershell": `# PowerShell: tracefix completion powershell | Out-String | Invoke-Expression, for example in $PROFILE
Register-ArgumentCompleter -Native -CommandName tracefix -ScriptBlock {
  param($word, $line, $cursor)
  $words = @($line.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
  if ($word -eq '') { $words += '""' }
  tracefix complete -- @words 2>$null | ForEach-Object {
    $text = if ($_ -match '[^\w./=*-]') { "'" + $_.Replace("'", "''") + "'" } else { $_ }
    [System.Management.Automation.CompletionResult]::new($text, $_, 'ParameterValue', $_)
  }
}
`,
}

// Run prints the script.
func (c *CompletionCmd) Run(std streams) error {
	_, err := io.WriteString(std.out, scripts[c.Shell])
	return err
}

// CompleteCmd is what the scripts call: it prints what the last word could become.
type CompleteCmd struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints a candidate a line.
func (c *CompleteCmd) Run(ctx context.Context, k *kong.Kong, std streams) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, w := range complete(ctx, k, words) {
		if !strings.ContainsFunc(w, unicode.IsControl) { // one line each, and nothing for the terminal
			fmt.Fprintln(std.out, w)
		}
	}
	return nil
}

// complete lists what the last of words could become, in the order of the help.
func complete(ctx context.Context, k *kong.Kong, words []string) []string {
	last := ""
	if len(words) > 0 {
		last = strings.Trim(words[len(words)-1], `"`)
		words = words[:len(words)-1]
	}
	node := k.Model.Node
	for _, w := range words {
		for _, child := range node.Children {
			if child.Name == w {
				node = child
			}
		}
	}
	var list []string
	var before *kong.Flag
	if len(words) > 0 {
		before = flagNamed(k, node, words[len(words)-1])
	}
	name, value, assigned := strings.Cut(last, "=")
	if assigned {
		before = flagNamed(k, node, name)
		last = value
	}
	switch {
	case before != nil && !before.IsBool():
		list = valuesOf(ctx, node, before, words)
		if at := strings.LastIndexByte(last, ','); at >= 0 { // a list: its last part is completed
			for i := range list {
				list[i] = last[:at+1] + list[i]
			}
		}
		if assigned {
			for i := range list {
				list[i] = name + "=" + list[i]
			}
			last = name + "=" + last
		}
	case strings.HasPrefix(last, "-"):
		for _, f := range flagsOf(k, node) {
			if !f.Hidden && !slices.Contains(list, "--"+f.Name) {
				list = append(list, "--"+f.Name)
			}
		}
	case node == k.Model.Node:
		for _, child := range node.Children {
			if !child.Hidden {
				list = append(list, child.Name)
			}
		}
	default:
		for _, p := range node.Positional {
			if p.Enum != "" {
				list = append(list, strings.Split(p.Enum, ",")...)
			}
		}
		// Below batch a path may stand where a command may: files win, which the shell completes.
		if files, _ := filepath.Glob(last + "*"); len(files) == 0 && len(words) > 0 && words[len(words)-1] == node.Name {
			for _, child := range node.Children {
				list = append(list, child.Name)
			}
		}
	}
	return slices.DeleteFunc(list, func(w string) bool { return !strings.HasPrefix(w, last) })
}

// flagsOf are the flags that may follow a command: its own, those of the subcommand that it
// stands for, and those of all commands.
func flagsOf(k *kong.Kong, node *kong.Node) []*kong.Flag {
	list := slices.Clone(node.Flags)
	if node.DefaultCmd != nil {
		list = append(list, node.DefaultCmd.Flags...)
	}
	return append(list, k.Model.Flags...)
}

// flagNamed returns the flag that a word names, nil if none does.
func flagNamed(k *kong.Kong, node *kong.Node, word string) *kong.Flag {
	for _, f := range flagsOf(k, node) {
		if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

// valuesOf lists the values of a flag: of its own list, of what the program knows, or of
// the file that the line names.
func valuesOf(ctx context.Context, node *kong.Node, f *kong.Flag, words []string) []string {
	if f.Enum != "" {
		return slices.DeleteFunc(strings.Split(f.Enum, ","), func(s string) bool { return s == "" })
	}
	switch f.Name {
	case "format":
		return formatsOf(node, words)
	case "weight":
		return []string{"cpu", "wall", "alloc", "exceptions", "contention", "wait"}
	case "do":
		return batch.DoingNames()
	case "tracks", "with":
		return slices.Clone(command.TrackNames)
	case "provider":
		return providersOf(ctx, words)
	}
	return nil
}

// formatsOf lists the formats that a command writes; those of batch are what is done writes.
func formatsOf(node *kong.Node, words []string) []string {
	name := node.Name
	switch name {
	case "compare":
		if node.Parent.Name == "batch" {
			return batchCompareFormats.Names()
		}
		return compareFormats.Names()
	case "batch", "run", "plan":
		name = "repair"
		for i, w := range words {
			if do, assigned := strings.CutPrefix(w, "--do="); assigned {
				name = do
			} else if w == "--do" && i+1 < len(words) {
				name = words[i+1]
			}
		}
	}
	if row := command.Lookup(name); row != nil {
		return row.Outputs.Names()
	}
	return nil
}

// providersOf lists the providers of the first trace among words, as far as a quarter of a
// second gets: who presses a key waits no longer.
func providersOf(ctx context.Context, words []string) []string {
	for _, w := range words {
		if s, err := os.Stat(w); err != nil || !s.Mode().IsRegular() {
			continue
		}
		ctx, stop := context.WithTimeout(ctx, 250*time.Millisecond)
		defer stop()
		in, err := input.Open(ctx, w, nil)
		if err != nil {
			return nil
		}
		defer in.Close()
		p := &providers{seen: map[string]bool{}}
		_, _ = input.Read(ctx, in.Reader, nil, p) // what was seen until then will do
		return p.names
	}
	return nil
}

// providers is a consumer that lists the providers of events in the order of their first one.
type providers struct {
	names []string
	seen  map[string]bool
}

func (p *providers) Begin(*nettrace.Reader) {}

func (p *providers) Event(ev *nettrace.Event) error {
	if name := ev.Metadata.Provider; !p.seen[name] {
		p.seen[name] = true
		p.names = append(p.names, name)
	}
	return nil
}

func (p *providers) End() {}
