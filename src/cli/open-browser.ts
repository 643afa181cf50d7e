/** Opens an address in the browser of the person who uses this machine. */
import { spawn } from "node:child_process";

/** @param onFailure called if this machine has no program for it, as servers have none */
export function openBrowser(url: string, onFailure: () => void): void {
  const [program, ...args] = openers[process.platform] ?? ["xdg-open"];
  const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
  child.once("error", onFailure);
  child.once("exit", (code) => {
    if (code !== 0) onFailure();
  });
  child.unref();
}

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly [program: string, ...args: string[]]>>> = {
  darwin: ["open"],
  // The first argument in quotes is the title of a window.
  win32: ["cmd", "/c", "start", '""'],
};
