// Command commands prints the tables of docs/commands.md, from the server's own table of
// commands:
//
//	go run ./internal/commands GROUP
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/bloomery/bloom/server"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "commands: want the name of a group of commands, such as connection")
		os.Exit(2)
	}
	fmt.Println("| command | since | does |")
	fmt.Println("|---|---|---|")
	printed := 0
	for _, cmd := range server.Commands() {
		if cmd.Group != os.Args[1] {
			continue
		}
		printed++
		rows := cmd.Subcommands
		if cmd.Handler != nil {
			rows = append([]*server.Command{cmd}, rows...)
		}
		for _, row := range rows {
			fmt.Printf("| %s | %s | %s |\n", code(row.Syntax()), row.Since, cell(row.Summary))
		}
	}
	if printed == 0 {
		fmt.Fprintf(os.Stderr, "commands: no command is of the group %q\n", os.Args[1])
		os.Exit(1)
	}
}

// cell and code format a text for a Markdown table, in which a bar ends a cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
func code(text string) string { return "`" + cell(text) + "`" }
