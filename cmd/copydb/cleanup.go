package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (p *program) cleanupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cleanup --config FILE", Short: "Remove what a migration keeps on the target; its state cannot be resumed afterwards",
		Args: noArguments, RunE: p.runCleanup,
	}
	p.configFlags(cmd.Flags())
	p.stateFlag(cmd.Flags(), "state `FILE` of the migration (default: state in the configuration)")
	p.jsonFlag(cmd.Flags())
	return cmd
}

func (p *program) runCleanup(cmd *cobra.Command, _ []string) error {
	loaded, err := p.load(cmd)
	if err != nil {
		return err
	}
	opt := p.options(cmd, loaded)
	v := p.newVoice()
	rep := p.newReporter(v, false)
	rep.live = nil
	opt.Logger, opt.Reporter = v.logger, rep
	for _, w := range p.warnings(cmd, loaded) {
		v.warning(w)
	}
	err, _ = p.supervised(cmd.Context(), v, loaded.Config, "", rep, func(ctx context.Context, abort <-chan struct{}) error {
		opt := opt // the other goroutine may end first
		opt.Abort = abort
		return p.work.cleanup(ctx, opt)
	})
	if err != nil {
		p.end(v, rep, opt, err)
		return toldError{err}
	}
	if !p.flags.json {
		fmt.Fprintf(p.console.stdout(), "The target holds nothing of the migration of %s any more.\n", opt.StatePath)
	}
	return nil
}
