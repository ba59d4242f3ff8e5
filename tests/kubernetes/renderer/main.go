// Renders the templates of a Helm chart as Helm does: Go's text/template, Sprig's functions, and
// those that Helm adds. For tests on machines without Helm.
//
//	go run main.go CHART RELEASE NAMESPACE < VALUES (YAML, merged over the chart's own)
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/ghodss/yaml"
)

type object = map[string]interface{}

func main() {
	if err := render(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func render(chart, release, namespace string) error {
	values, about, given := object{}, object{}, object{}
	if err := read(filepath.Join(chart, "values.yaml"), &values); err != nil {
		return err
	}
	if err := read(filepath.Join(chart, "Chart.yaml"), &about); err != nil {
		return err
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, &given); err != nil {
		return err
	}
	merge(values, given)
	chartOf := object{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]}
	releaseOf := object{"Name": release, "Namespace": namespace, "Service": "Helm", "IsInstall": true, "IsUpgrade": false, "Revision": 1}
	data := object{"Values": values, "Chart": chartOf, "Release": releaseOf}

	whole := template.New("chart").Option("missingkey=zero")
	whole.Funcs(functions(whole))
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return err
	}
	sort.Strings(paths)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := whole.New(filepath.Base(path)).Parse(string(content)); err != nil {
			return err
		}
	}
	for _, path := range paths {
		if filepath.Ext(path) != ".yaml" && filepath.Base(path) != "NOTES.txt" {
			continue
		}
		var made strings.Builder
		if err := whole.ExecuteTemplate(&made, filepath.Base(path), data); err != nil {
			return err
		}
		if text := strings.TrimSpace(strings.ReplaceAll(made.String(), "<no value>", "")); text != "" && filepath.Ext(path) == ".yaml" {
			fmt.Printf("---\n# Source: %s\n%s\n", filepath.Base(path), text)
		}
	}
	return nil
}

func read(path string, into *object) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return yaml.Unmarshal(content, into)
}

// merge puts the given values over those of the chart, mapping by mapping; null removes one.
func merge(into, given object) {
	for key, value := range given {
		below, isMap := value.(object)
		own, wasMap := into[key].(object)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			merge(own, below)
		default:
			into[key] = value
		}
	}
}

func functions(whole *template.Template) template.FuncMap {
	found := sprig.TxtFuncMap()
	delete(found, "env")
	delete(found, "expandenv")
	found["include"] = func(name string, data interface{}) (string, error) {
		var made strings.Builder
		err := whole.ExecuteTemplate(&made, name, data)
		return made.String(), err
	}
	found["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	found["toJson"] = func(value interface{}) (string, error) {
		text, err := json.Marshal(value)
		return string(text), err
	}
	found["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, errors.New(message)
		}
		return value, nil
	}
	return found
}
