// What changes something asks first: in a dialogue, with the filter's name typed again,
// and the full password unless the reader has given it already.

import { element } from "./page.js";
import { ask } from "./console.api.js";

const dialog = () => document.querySelector("#dialog");

// change asks, sends and returns what was answered, or undefined if the reader has
// cancelled.
//
//   change(t, {title, why, fields: [{key, label, value, options, optional}], confirm: name,
//     access, danger, send: (values) => [method, path, body]})
export function change(t, about) {
  return new Promise((resolve) => {
    const box = dialog();
    const fields = (about.fields ?? []).map((field) => ({ ...field, input: inputFor(field) }));
    if (about.confirm !== undefined) fields.push({ key: "confirm", label: t("confirm", { name: about.confirm }), input: inputFor({ key: "confirm" }) });
    if (about.access !== "full") fields.push({ key: "admin", label: t("adminPassword"), input: inputFor({ key: "admin", type: "password" }) });
    const error = element("p", { class: "error", role: "alert" });
    const yes = element("button", { class: about.danger ? "danger" : "main" }, about.yes ?? t("do"));
    const no = element("button", { type: "button" }, t("cancel"));
    const form = element(
      "form",
      { class: "stack", method: "dialog", autocomplete: "off" },
      element("h2", { id: "dialog-title" }, about.title),
      element("p", { class: "muted" }, about.why),
      ...fields.map((f) => element("div", { class: "field" }, element("label", { for: f.input.id }, f.label), f.input)),
      error,
      element("div", { class: "buttons" }, no, yes),
    );
    let answer;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const values = Object.fromEntries(fields.map((f) => [f.key, f.input.value]));
      error.textContent = "";
      if (about.confirm !== undefined && values.confirm !== about.confirm) {
        error.textContent = t("notTheName");
        fields.find((f) => f.key === "confirm").input.focus();
        return;
      }
      yes.disabled = true;
      try {
        const [method, path, body] = about.send(values);
        answer = await ask(method, path, body, values.admin);
        box.close();
      } catch (failure) {
        error.textContent = failure.status === 401 ? t("wrongPassword") : failure.message;
      }
      yes.disabled = false;
    });
    no.addEventListener("click", () => box.close());
    box.addEventListener("close", () => resolve(answer), { once: true });
    box.replaceChildren(form);
    box.showModal();
    (fields[0]?.input ?? yes).focus();
  });
}

function inputFor({ key, value = "", options, type = "text", hint }) {
  const id = "dialog-" + key;
  if (options) {
    const select = element("select", { id });
    for (const [given, label] of options) select.append(element("option", { value: given }, label));
    return select;
  }
  const input = element("input", { id, type, spellcheck: "false", autocomplete: type === "password" ? "current-password" : "off", placeholder: hint });
  input.value = value;
  return input;
}
