package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/copydb/copydb/copydb/config"
)

// version is set when the program is linked.
var version = "dev"

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "copydb --config FILE",
		Short: "Copy a MySQL or MariaDB database to another server and follow its binary log",
		Long: `copydb copies a MySQL or MariaDB database to another server in chunks and then applies the
source's binary log until the target is caught up. Interrupt it at any time; go on with --resume-state.

Every flag has an environment variable: --resume-state is COPYDB_RESUME_STATE.`,
		Args:              noArguments,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: p.prepare,
		RunE:              p.runCommand,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(&cobra.Command{Use: "help", Short: "Print this help, or that of a command", Hidden: true, RunE: func(_ *cobra.Command, args []string) error {
		if cmd, _, err := root.Find(args); err == nil {
			return cmd.Help()
		}
		return root.Help()
	}})
	p.logFlags(root.PersistentFlags())
	p.configFlags(root.Flags())
	p.runFlags(root.Flags())
	root.AddCommand(
		sampleCommand(), p.checkCommand(), p.statusCommand(), p.cleanupCommand(), versionCommand(), completionCommand(),
		later("verify", "compare source and target"), later("cutover", "end a run that follows"), later("pause", "pause a run"),
		later("continue", "continue a paused run"), later("set", "change a running run"), later("doctor", "look what is wrong"),
		later("reverse", "copy back"),
	)
	return root
}

// prepare runs before every command.
func (p *program) prepare(cmd *cobra.Command, _ []string) error {
	if err := p.readEnv(cmd); err != nil {
		return err
	}
	return p.checkFlags(cmd)
}

func sampleCommand() *cobra.Command {
	return &cobra.Command{
		Use: "config", Short: "Print a commented sample configuration", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), config.Sample())
			return err
		},
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "copydb %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

func completionCommand() *cobra.Command {
	shells := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": func(root *cobra.Command, w io.Writer) error { return root.GenPowerShellCompletionWithDesc(w) },
	}
	return &cobra.Command{
		Use: "completion SHELL", Short: "Print a completion script for bash, zsh, fish or powershell",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return usagef("completion needs one of bash, zsh, fish, powershell")
			}
			return shells[args[0]](cmd.Root(), cmd.OutOrStdout())
		},
	}
}
