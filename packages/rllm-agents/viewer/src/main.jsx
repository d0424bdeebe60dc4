// The page: a head with tabs, and one of four views below it.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, poll } from "./api.js";
import { Curves } from "./curves.jsx";
import { Episodes } from "./episodes.jsx";
import { Help } from "./help.jsx";
import { goTo, TABS, usePlace } from "./place.js";
import { Settings } from "./settings.jsx";
import { nextTheme, useTheme } from "./theme.js";
import { Timeline } from "./timeline.jsx";
import { short, visible } from "./visible.js";

const RUN_MILLISECONDS = 1000;
const MOST_FRAMES = 60;

function useRun() {
  const [run, setRun] = useState(null);
  const [isLost, setIsLost] = useState(false);
  useEffect(
    () =>
      poll(async () => {
        try {
          setRun(await get("run"));
          setIsLost(false);
        } catch (error) {
          setIsLost(true);
          throw error;
        }
      }, RUN_MILLISECONDS),
    [],
  );
  return [run, isLost];
}

function Head({ run, isLost, tab, values, onHelp }) {
  return (
    <header>
      <h1 title={visible(run.path)}>{visible(run.name)}</h1>
      <nav aria-label="Views">
        {TABS.map((name, index) => (
          <a
            key={name}
            href={`#${name}`}
            aria-current={name === tab ? "page" : undefined}
            onClick={(event) => {
              event.preventDefault();
              goTo(name, name === "episodes" && tab === name ? values : {});
            }}
          >
            {name} <kbd>{index + 1}</kbd>
          </a>
        ))}
      </nav>
      <p class="status" role="status">
        {isLost ? <strong>the viewer has stopped</strong> : <Progress run={run} />}
      </p>
      <button type="button" onClick={nextTheme} aria-label="Light or dark">◐</button>
      <button type="button" onClick={onHelp} aria-label="Keys">?</button>
    </header>
  );
}

function Progress({ run }) {
  const share = run.bytes ? Math.floor((100 * run.bytes_read) / run.bytes) : 100;
  return (
    <>
      {run.num_episodes.toLocaleString("en")} episodes
      {run.is_complete ? "" : `, ${share} % read`}
      {run.num_bad_lines ? `, ${short(run.num_bad_lines)} unreadable lines` : ""}
    </>
  );
}

/** Focus the search field as soon as it is there. */
function focusSearch(frames) {
  const field = document.getElementById("search");
  if (field) field.focus();
  else if (frames > 0) requestAnimationFrame(() => focusSearch(frames - 1));
}

function useKeys(toggleHelp) {
  useEffect(() => {
    function pressed(event) {
      const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
      const number = "1234".indexOf(event.key);
      if (number >= 0) goTo(TABS[number]);
      else if (event.key === "?") toggleHelp();
      else if (event.key === "/") {
        if (!document.getElementById("search")) goTo("episodes");
        focusSearch(MOST_FRAMES);
      } else return;
      event.preventDefault();
    }
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [toggleHelp]);
}

function App() {
  const [run, isLost] = useRun();
  const { tab, values } = usePlace();
  const [showsHelp, setShowsHelp] = useState(false);
  const theme = useTheme();
  useKeys(() => setShowsHelp((shown) => !shown));
  useEffect(() => {
    if (run) document.title = `${visible(run.name)} – rllm view`;
  }, [run?.name]);
  if (!run) return <p class="empty">{isLost ? "The viewer does not answer." : "Reading the run…"}</p>;
  return (
    <>
      <Head run={run} isLost={isLost} tab={tab} values={values} onHelp={() => setShowsHelp(true)} />
      <main>
        {tab === "curves" && <Curves theme={theme} />}
        {tab === "episodes" && <Episodes run={run} values={values} />}
        {tab === "timeline" && <Timeline theme={theme} />}
        {tab === "settings" && <Settings run={run} />}
      </main>
      {showsHelp && <Help onClose={() => setShowsHelp(false)} />}
    </>
  );
}

render(<App />, document.getElementById("app"));
