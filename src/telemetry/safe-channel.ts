/**
 * Channels whose listeners cannot end the process. Node rethrows an exception of a listener where no code can catch it,
 * so one faulty listener could end the process of every worker.
 */
import { type Channel, type ChannelListener, channel } from "node:diagnostics_channel";
import { defaultLogger } from "./logger.js";

/** Returns the channel of this name, and guards every listener that subscribes to it from now on. */
export function safeChannel(name: string): Channel {
  const target = channel(name);
  // Another copy of Pawl in this process has guarded the channel already.
  if (Object.hasOwn(target, "subscribe")) return target;
  const guards = new WeakMap<ChannelListener, ChannelListener>();
  const ownGuards = new WeakSet<ChannelListener>();
  const guardFor = (listener: ChannelListener): ChannelListener => {
    if (typeof listener !== "function" || ownGuards.has(listener)) return listener;
    let guard = guards.get(listener);
    if (guard === undefined) {
      guard = guardListener(name, listener);
      guards.set(listener, guard);
      ownGuards.add(guard);
    }
    return guard;
  };
  // A channel changes its class when it gets its first listener, so the method is looked up at each call.
  const inherited = (method: "subscribe" | "unsubscribe") =>
    Object.getPrototypeOf(target)[method] as Channel[typeof method];
  const subscribe = (listener: ChannelListener) => inherited("subscribe").call(target, guardFor(listener));
  const unsubscribe = (listener: ChannelListener) => inherited("unsubscribe").call(target, guardFor(listener));
  return Object.defineProperties(target, {
    subscribe: { value: subscribe, configurable: true },
    unsubscribe: { value: unsubscribe, configurable: true },
  });
}

function guardListener(name: string, listener: ChannelListener): ChannelListener {
  let hasWarned = false;
  const warnOnce = (error: unknown) => {
    if (hasWarned) return;
    hasWarned = true;
    defaultLogger.warn(`A listener of the channel "${name}" failed; further failures of it are not logged.`, error);
  };
  return (message, channelName) => {
    try {
      const result = listener(message, channelName) as unknown;
      if (result instanceof Promise) result.catch(warnOnce);
    } catch (error) {
      warnOnce(error);
    }
  };
}
