package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var updateOpenAPI = flag.Bool("update", false, "write docs/openapi.json")

// TestOpenAPI holds docs/openapi.json to the routes, their parameters and the fields of
// what they take and answer.
func TestOpenAPI(t *testing.T) {
	path := filepath.Join("..", "docs", "openapi.json")
	want := openAPI(t)
	if *updateOpenAPI {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/openapi.json is not what the routes are: go test ./server -run TestOpenAPI -update")
	}
	var file struct {
		OpenAPI string
		Paths   map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(got, &file); err != nil || file.OpenAPI != "3.1.0" {
		t.Fatalf("%q, %v", file.OpenAPI, err)
	}
	count := 0
	for _, methods := range file.Paths {
		count += len(methods)
	}
	if count != len(apiRoutes) {
		t.Errorf("%d operations, want %d", count, len(apiRoutes))
	}
}

type object = map[string]any

// openAPI makes the file from the table of routes.
func openAPI(t *testing.T) []byte {
	schemas, paths := object{}, object{}
	schemaOf(t, reflect.TypeOf(errorJSON{}), schemas)
	for _, row := range apiRoutes {
		at := apiPrefix + row.path
		if paths[at] == nil {
			paths[at] = object{}
		}
		operation := object{"summary": row.summary, "operationId": operationID(row)}
		var params []object
		for _, name := range []string{"name", "id"} {
			if strings.Contains(row.path, "{"+name+"}") {
				about := map[string]string{"name": "the name of a filter, any bytes, percent-encoded", "id": "a connection's id"}[name]
				params = append(params, object{"name": name, "in": "path", "required": true, "description": about, "schema": object{"type": "string"}})
			}
		}
		if strings.Contains(row.path, "{name}") {
			params = append(params, object{"name": "base64", "in": "query", "description": "the name in the path is base64: for . and .., which clients resolve", "schema": object{"type": "boolean"}})
		}
		for _, p := range row.params {
			schema := object{"type": p.kind}
			if p.many {
				schema = object{"type": "array", "items": schema}
			}
			params = append(params, object{"name": p.name, "in": "query", "description": p.about, "schema": schema})
		}
		if params != nil {
			operation["parameters"] = params
		}
		if row.body != nil {
			operation["requestBody"] = object{"required": true, "content": content("application/json", schemaOf(t, reflect.TypeOf(row.body), schemas))}
		}
		kind := "application/json"
		if row.stream != nil {
			kind = "text/event-stream"
		}
		responses := object{"200": object{"description": "done", "content": content(kind, schemaOf(t, reflect.TypeOf(row.result), schemas))}}
		for _, code := range slices.Concat(allCodes, row.codes) {
			responses[fmt.Sprint(code)] = object{"description": http.StatusText(code), "content": content("application/json", ref("error"))}
		}
		operation["responses"] = responses
		operation["description"] = map[access]string{accessRead: "The read password suffices.", accessFull: "Takes the full password, if one is set."}[row.needs]
		paths[at].(object)[strings.ToLower(row.method)] = operation
	}
	file := object{
		"openapi":    "3.1.0",
		"info":       object{"title": "Bloomery over HTTP", "version": "1", "description": "docs/http.md has examples. Every error is JSON, with the field error."},
		"servers":    []object{{"url": "http://127.0.0.1:6381"}},
		"security":   []object{{}, {"password": []string{}}},
		"paths":      paths,
		"components": object{"schemas": schemas, "securitySchemes": object{"password": object{"type": "http", "scheme": "basic"}}},
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(file); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// operationID is get_filters_name_population.
func operationID(row route) string {
	return strings.ToLower(row.method) + strings.NewReplacer("/", "_", "{", "", "}", "").Replace(row.path)
}

func content(kind string, schema object) object { return object{kind: object{"schema": schema}} }

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// schemaOf returns the schema of a type; those of structs are added to schemas.
func schemaOf(t *testing.T, of reflect.Type, schemas object) object {
	switch {
	case of == reflect.TypeOf(apiText{}):
		schemas["text"] = object{"oneOf": []object{{"type": "string"}, {"type": "object", "required": []string{"base64"},
			"properties": object{"base64": object{"type": "string"}}}}, "description": "a string, or bytes that are not UTF-8"}
		return ref("text")
	case of == reflect.TypeOf(json.RawMessage{}):
		return schemaOf(t, reflect.TypeOf(filterJSON{}), schemas)
	}
	switch of.Kind() {
	case reflect.Pointer:
		return object{"oneOf": []object{schemaOf(t, of.Elem(), schemas), {"type": "null"}}}
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(t, of.Elem(), schemas)}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Struct:
		name := strings.TrimSuffix(of.Name(), "JSON")
		if schemas[name] == nil {
			properties, required := object{}, []string{}
			for _, field := range reflect.VisibleFields(of) {
				tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
				if field.Anonymous {
					continue
				}
				if tag == "" {
					t.Errorf("%s.%s has no name in JSON", of.Name(), field.Name)
				}
				schema := schemaOf(t, field.Type, schemas)
				if about := field.Tag.Get("doc"); about != "" {
					schema["description"] = about
				}
				properties[tag] = schema
				if !strings.Contains(options, "omitempty") {
					required = append(required, tag)
				}
			}
			slices.Sort(required)
			schemas[name] = object{"type": "object", "properties": properties, "required": required}
		}
		return ref(name)
	}
	t.Errorf("no schema for %v", of)
	return nil
}
