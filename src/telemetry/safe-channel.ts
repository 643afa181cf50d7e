/**
 * Channels whose listeners cannot end the process. Node throws what a listener throws again where nothing can catch it,
 * and so one line of monitoring could take every worker down.
 */
import { type Channel, type ChannelListener, channel } from "node:diagnostics_channel";
import { defaultLogger } from "./logger.js";

/** A channel of Pawl's: every listener that subscribes to it once Pawl is loaded is guarded. */
export function safeChannel(name: string): Channel {
  const made = channel(name);
  // Another copy of Pawl in this process has seen to it.
  if (Object.hasOwn(made, "subscribe")) return made;
  const guards = new WeakMap<ChannelListener, ChannelListener>();
  const own = new WeakSet<ChannelListener>();
  const guardOf = (listener: ChannelListener): ChannelListener => {
    if (typeof listener !== "function" || own.has(listener)) return listener;
    let guard = guards.get(listener);
    if (guard === undefined) {
      guard = guarding(name, listener);
      guards.set(listener, guard);
      own.add(guard);
    }
    return guard;
  };
  // A channel changes its class when it gets its first listener, so the method is looked up at each call.
  const inherited = (method: "subscribe" | "unsubscribe") =>
    Object.getPrototypeOf(made)[method] as Channel[typeof method];
  const subscribe = (listener: ChannelListener) => inherited("subscribe").call(made, guardOf(listener));
  const unsubscribe = (listener: ChannelListener) => inherited("unsubscribe").call(made, guardOf(listener));
  return Object.defineProperties(made, {
    subscribe: { value: subscribe, configurable: true },
    unsubscribe: { value: unsubscribe, configurable: true },
  });
}

function guarding(name: string, listener: ChannelListener): ChannelListener {
  let hasComplained = false;
  const complain = (error: unknown) => {
    if (hasComplained) return;
    hasComplained = true;
    defaultLogger.warn(`A listener of the channel "${name}" failed; further failures of it are not told.`, error);
  };
  return (message, channelName) => {
    try {
      const answer = listener(message, channelName) as unknown;
      if (answer instanceof Promise) answer.catch(complain);
    } catch (error) {
      complain(error);
    }
  };
}
