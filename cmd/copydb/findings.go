package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"

	"github.com/copydb/copydb/internal/check"
)

var severities = []check.Severity{check.SeverityError, check.SeverityWarning, check.SeverityInfo}

// findingText is a finding with its fix beneath.
func findingText(f check.Finding, prefix string) string {
	var b strings.Builder
	b.WriteString(prefix)
	if f.Object != "" {
		b.WriteString(f.Object + ": ")
	}
	fmt.Fprintf(&b, "%s [%s]\n", f.Message, f.ID)
	if f.Fix != "" {
		b.WriteString("    fix: " + strings.ReplaceAll(f.Fix, "\n", "\n         ") + "\n")
	}
	return b.String()
}

// findingsText lists findings, the worst first.
func findingsText(findings []check.Finding) string {
	var b strings.Builder
	titles := map[check.Severity]string{check.SeverityError: "Errors", check.SeverityWarning: "Warnings", check.SeverityInfo: "For information"}
	for _, severity := range severities {
		title := titles[severity] + ":\n"
		for _, f := range findings {
			if f.Severity == severity {
				b.WriteString(title + findingText(f, "  "))
				title = ""
			}
		}
	}
	n := countBy(findings)
	fmt.Fprintf(&b, "%s, %s.", plural(n[check.SeverityError], "error"), plural(n[check.SeverityWarning], "warning"))
	if n[check.SeverityError] == 0 {
		b.WriteString(" A run would start.\n")
	} else {
		b.WriteString(" A run would be refused.\n")
	}
	return b.String()
}

func countBy(findings []check.Finding) map[check.Severity]int64 {
	n := map[check.Severity]int64{}
	for _, f := range findings {
		n[f.Severity]++
	}
	return n
}

// The elements of a JUnit file.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int64       `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitProblem `xml:"failure,omitempty"`
		Error   *junitProblem `xml:"error,omitempty"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes one test case per finding; errors are failures. failed is
// what kept the checks from running, or nil.
func writeJUnit(path string, findings []check.Finding, failed error) error {
	suite := junitSuite{Name: "copydb check", Failures: countBy(findings)[check.SeverityError]}
	for _, f := range findings {
		c := junitCase{Class: "copydb.check." + string(f.Severity), Name: strings.TrimSpace(f.ID + " " + f.Object)}
		if f.Severity == check.SeverityError {
			c.Failure = &junitProblem{Message: f.Message, Text: f.Fix}
		} else {
			c.Out = strings.TrimSpace(f.Message + "\n" + f.Fix)
		}
		suite.Cases = append(suite.Cases, c)
	}
	switch {
	case failed != nil:
		suite.Errors = 1
		suite.Cases = append(suite.Cases, junitCase{Class: "copydb.check", Name: "preflight", Error: &junitProblem{Message: failed.Error()}})
	case len(findings) == 0:
		suite.Cases = []junitCase{{Class: "copydb.check", Name: "preflight"}}
	}
	suite.Tests = len(suite.Cases)
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path, append([]byte(xml.Header), append(text, '\n')...), 0o644); err != nil {
		return fmt.Errorf("write JUnit file: %w", err)
	}
	return nil
}
