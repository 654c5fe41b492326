// The lessons: each is a few steps, which do something to the playground and say what to
// look at. The words and numbers of the first ones are those of well-known introductions.

import { element } from "./page.js";
import { binarySize, commas, fixed } from "./human.js";
import { describe, plan } from "./sizing.js";

const by = (id) => document.getElementById(id);

const sizeOf = (p) => binarySize(describe("paired", plan("paired", { keys: 1e10, rate: p })).bytes);

// lessons: a step's run may return values for its text.
export const lessons = [
  { name: "culprits", steps: [
    (play) => play.set({ layout: "classic", m: 64, k: 2 }, ["kiwi", "plum"]),
    (play) => play.type("mango"),
    (play) => play.type("pineapple"),
  ] },
  { name: "hello", steps: [
    (play) => play.set({ layout: "classic", m: 15, k: 2, scheme: "murmur2-fnv-js" }),
    (play) => play.add("hello"),
    (play) => play.add("world"),
    (play) => play.type("charmer"),
    (play) => play.type("zaslf"),
  ] },
  { name: "titanic", steps: [
    (play) => {
      play.set({ layout: "classic", m: 8, k: 2, scheme: "sha256-md5" });
      play.add("Titanic");
    },
    (play) => play.add("Avatar"),
    (play) => play.type("The Godfather"),
    (play) => play.type("Ratatouille"),
  ] },
  { name: "billions", steps: [
    () => ({ whole: fixed((1e10 * 64) / 1e9, 0) + " GB" }),
    () => ({ hundredth: sizeOf(0.01), thousandth: sizeOf(0.001) }),
    (play) => {
      play.set({ layout: "paired", m: 4096, k: 6 });
      play.addRandom(400);
      const p = plan("paired", { keys: 1e10, rate: 0.01 });
      return { bits: fixed(p.bits / p.keys, 2), keys: commas(Math.floor(4096 / (p.bits / p.keys))) };
    },
  ] },
  { name: "stranger", steps: [
    (play) => {
      play.set({ layout: "counting", m: 4096, k: 4 }, ["alice", "bob", "carol"]);
      play.addRandom(1000);
    },
    (play) => play.find(),
    (play) => play.remove(play.typed()),
    (play) => play.type("alice"),
  ] },
  { name: "overflow", steps: [
    (play) => {
      play.set({ layout: "counting", m: 4096, k: 4 });
      for (let i = 0; i < 14; i++) play.add("tick");
    },
    (play) => {
      for (let i = 0; i < 3; i++) play.add("tick");
    },
    (play) => {
      for (let i = 0; i < 17; i++) play.remove("tick");
    },
  ] },
];

export function startLessons(t, play) {
  let lesson = null;
  let step = 0;
  let values = {};
  const show = () => {
    const box = by("lessons");
    box.replaceChildren(...lessons.map((one) => {
      const button = element("button", { type: "button", "data-lesson": one.name }, t()("startLesson"));
      button.setAttribute("aria-label", `${t()("startLesson")}: ${t()(one.name + "Title")}`);
      button.addEventListener("click", () => begin(one));
      return element("article", { class: "card course" }, element("h3", {}, t()(one.name + "Title")), element("p", {}, t()(one.name + "About")), button);
    }));
    by("lesson").hidden = lesson === null;
    if (lesson === null) return;
    by("lesson-step").textContent = t()("stepOf", { step: step + 1, steps: lesson.steps.length });
    by("lesson-title").textContent = t()(lesson.name + "Title");
    by("lesson-text").textContent = t()(lesson.name + (step + 1), values);
    by("lesson-next").hidden = step === lesson.steps.length - 1;
  };
  const go = () => {
    values = lesson.steps[step](play) ?? {};
    show();
  };
  const begin = (one) => {
    lesson = one;
    step = 0;
    go();
    by("lesson").scrollIntoView({ block: "start" });
    by("lesson-next").focus({ preventScroll: true });
  };
  by("lesson-next").addEventListener("click", () => {
    step++;
    go();
    if (by("lesson-next").hidden) by("lesson-end").focus();
  });
  by("lesson-end").addEventListener("click", () => {
    lesson = null;
    show();
    by("word").focus();
  });
  new MutationObserver(show).observe(document.documentElement, { attributeFilter: ["lang"] });
  show();
}
