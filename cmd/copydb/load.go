package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/copydb/copydb/copydb"
	"github.com/copydb/copydb/copydb/config"
)

// load reads the configuration from file, environment and flags.
func (p *program) load(cmd *cobra.Command) (*config.Loaded, error) {
	if p.flags.config == "" && p.flags.source.url == "" && p.flags.target.url == "" && len(p.flags.set) == 0 {
		if cmd.HasParent() || len(p.origin) > 0 {
			return nil, usagef("no configuration: give --config FILE, or --source, --target and --include")
		}
		return nil, errNothingToDo
	}
	in := config.Input{Name: "the command line", LookupEnv: p.lookupEnv}
	if p.flags.config != "" {
		data, name, err := p.readConfig()
		if err != nil {
			return nil, err
		}
		in.Name, in.File = name, bytes.NewReader(data)
	}
	if err := p.settings(&in); err != nil {
		return nil, err
	}
	loaded, err := config.Load(in)
	if err != nil {
		return nil, err
	}
	return loaded, p.askPasswords(loaded)
}

func (p *program) readConfig() (data []byte, name string, err error) {
	name = p.flags.config
	if name == "-" {
		data, err = io.ReadAll(p.stdin)
		name = "<stdin>"
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, name, usagef("cannot read the configuration: %v", err)
	}
	return data, name, nil
}

// settings collects what flags and environment say about the configuration.
func (p *program) settings(in *config.Input) error {
	add := func(flag string, settings ...config.Setting) {
		if p.origin[flag] == envName(flag) {
			in.Env = append(in.Env, settings...)
		} else {
			in.Flags = append(in.Flags, settings...)
		}
	}
	for i, text := range p.flags.set {
		layer, origin := &in.Flags, "--set"
		if i < p.envSets {
			layer, origin = &in.Env, envName("set")
		}
		s, err := config.ParseSet(text, origin)
		if err != nil {
			return usagef("%v", err)
		}
		*layer = append(*layer, s)
	}
	for _, side := range []string{"source", "target"} {
		if err := p.sideSettings(side, add); err != nil {
			return err
		}
	}
	if origin, ok := p.origin["include"]; ok {
		add("include", config.Strings("tables.include", p.flags.include, origin))
	}
	if origin, ok := p.origin["until"]; ok {
		value := config.String("catch_up.until", p.flags.until, origin)
		if strings.HasPrefix(p.flags.until, "{") {
			value = config.Text("catch_up.until", p.flags.until, origin)
		}
		add("until", value)
	}
	return nil
}

func (p *program) sideSettings(side string, add func(string, ...config.Setting)) error {
	f := p.side(side)
	if origin, ok := p.origin[side]; ok {
		set, err := config.ParseURL(side, f.url, origin)
		if err != nil {
			return usagef("%s: %v", origin, err)
		}
		add(side, set...)
	}
	for form, value := range map[string]string{"env": f.passwordEnv, "file": f.passwordFile} {
		flag := side + "-password-" + form
		if origin, ok := p.origin[flag]; ok {
			add(flag, config.String(side+".password_"+form, value, origin))
		}
	}
	return nil
}

func (p *program) side(side string) sideFlags {
	if side == "source" {
		return p.flags.source
	}
	return p.flags.target
}

// options turns flags and configuration into what a run needs.
func (p *program) options(cmd *cobra.Command, loaded *config.Loaded) copydb.Options {
	opt := copydb.Options{
		Config: loaded.Config, StatePath: loaded.Config.State, DryRun: p.flags.dryRun, ShowKeys: p.flags.showKeys,
		Command: p.command(cmd), Version: version,
	}
	if p.given("state") {
		opt.StatePath = p.flags.state
	}
	switch {
	case p.given("resume-state"):
		opt.Start, opt.StatePath = copydb.StartResume, p.flags.resumeState
	case p.flags.resumeIfPresent:
		opt.Start = copydb.StartResumeIfPresent
	case p.flags.startOver:
		opt.Start = copydb.StartOver
	}
	opt.Config.State = opt.StatePath
	return opt
}

// warnings returns what loading has to say that stops nothing.
func (p *program) warnings(cmd *cobra.Command, loaded *config.Loaded) []string {
	list := loaded.Warnings
	for _, name := range p.unknownEnv(cmd.Root(), loaded.EnvNames) {
		list = append(list, fmt.Sprintf("the environment variable %s means nothing to copydb", name))
	}
	return list
}
