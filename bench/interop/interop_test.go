package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/bloomery/bloom/classic"
)

// liar is a program that behaves like goBlooms, with one flaw.
type liar struct {
	goBlooms
	answer, asked, file bool // wrong
	fails               bool
}

func (l liar) make(j job) ([]byte, []bool, error) {
	file, answers, err := l.goBlooms.make(j)
	if l.answer {
		answers[len(answers)-1] = !answers[len(answers)-1]
	}
	if l.file {
		file[len(file)/2] ^= 1
	}
	return file, answers, err
}

func (l liar) read(j job, file []byte) ([]bool, error) {
	if l.fails {
		return nil, errors.New("cannot read this")
	}
	answers, err := l.goBlooms.read(j, file)
	if l.asked {
		answers[0] = !answers[0]
	}
	return answers, err
}

// The comparison can fail: it passes an honest program and catches every lie.
func TestCompare(t *testing.T) {
	honest := trial{variant: "binary", shape: urls, n: 1000, p: 0.1}
	for _, tt := range []struct {
		name    string
		program program
		scheme  classic.Scheme
		trial   trial
		want    string // part of a problem; "" if there must be none
	}{
		{"honest", liar{}, classic.SchemeBitsAndBlooms, honest, ""},
		{"an answer", liar{answer: true}, classic.SchemeBitsAndBlooms, honest, "of the program's filter: 1 of 11014 answers differ"},
		{"an answer to ours", liar{asked: true}, classic.SchemeBitsAndBlooms, honest, "of our filter: 1 of 11014 answers differ"},
		{"a bit", liar{file: true}, classic.SchemeBitsAndBlooms, honest, "they differ from byte"},
		{"a reader", liar{fails: true}, classic.SchemeBitsAndBlooms, honest, "cannot read this"},
		{"our scheme", liar{}, classic.SchemeGuava64, honest, "writing our filter"},
		{"no false positives", liar{}, classic.SchemeBitsAndBlooms, trial{variant: "binary", shape: urls, n: 10, p: 1e-9}, "choose higher rates"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := compare(peer{
				format: "bits-and-blooms",
				start:  func() (program, error) { return tt.program, nil },
				trials: []trial{tt.trial},
				ours:   classicOf(classic.Config{Scheme: tt.scheme}),
			})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(r.problems, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("problems are\n%s\nwant %q", got, tt.want)
			}
		})
	}
}

func TestWithBlocks(t *testing.T) {
	const text = "# T\n\n" + marker + "\nold\nolder\n\nprose\n\n" + marker + "\nold\n"
	got, err := withBlocks(text, []string{"a"}, []string{"b", "c"})
	want := "# T\n\n" + marker + "\na\n\nprose\n\n" + marker + "\nb\nc\n"
	if err != nil || got != want {
		t.Errorf("withBlocks = %q, %v, want %q", got, err, want)
	}
	if _, err := withBlocks(text, []string{"a"}, []string{"b"}, []string{"c"}); err == nil {
		t.Error("three blocks went under two markers")
	}
}
