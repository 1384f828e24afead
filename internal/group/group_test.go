package group

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestPanicBecomesAnError(t *testing.T) {
	g, ctx := WithContext(t.Context())
	g.Go("the copy of a table", func() error {
		var none []int
		none[len(none)] = 1
		return nil
	})
	err := g.Wait()
	var crash *PanicError
	if !errors.As(err, &crash) || len(crash.Stack) == 0 {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"the copy of a table", "index out of range", "group_test.go:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if !errors.Is(context.Cause(ctx), err) {
		t.Errorf("the others are told %v", context.Cause(ctx))
	}
}
