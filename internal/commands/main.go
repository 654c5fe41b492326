// Command commands prints the tables of docs/commands.md, from the server's own table of
// commands, and that of docs/http.md, from its table of routes:
//
//	go run ./internal/commands GROUP [PREFIX]
//	go run ./internal/commands http
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/bloomery/bloom/server"
)

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "commands: want the name of a group of commands, such as connection, and perhaps how the commands' names begin")
		os.Exit(2)
	}
	prefix := strings.Join(os.Args[2:], "")
	if os.Args[1] == "http" {
		printRoutes()
		return
	}
	fmt.Println("| command | since | does |")
	fmt.Println("|---|---|---|")
	printed := 0
	for _, cmd := range server.Commands() {
		if cmd.Group != os.Args[1] || !strings.HasPrefix(cmd.Name, prefix) {
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

// printRoutes prints the routes of the API over HTTP.
func printRoutes() {
	fmt.Println("| request | password | does |")
	fmt.Println("|---|---|---|")
	for _, row := range server.Routes() {
		needs := "read"
		if row.Full {
			needs = "full"
		}
		fmt.Printf("| %s | %s | %s |\n", code(row.Method+" "+row.Path), needs, cell(row.Summary))
	}
}

// cell and code format a text for a Markdown table, in which a bar ends a cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
func code(text string) string { return "`" + cell(text) + "`" }
