import { render } from "preact";
import "./styles/tokens.css";
import "./styles/base.css";
import { startLive } from "./live/live.js";
import { App } from "./shell/app.js";

startLive();
render(<App />, document.getElementById("app") as HTMLElement);
