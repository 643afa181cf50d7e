import { CopyButton } from "../../ui/copy.js";
import { escapeHidden, formatCapped } from "../../ui/format.js";
import { Note } from "../../ui/page.js";
import { Time } from "../../ui/time.js";
import { LimitActions } from "./actions/limit-actions.js";
import { allowances, type Limit, type LimitPage, whenFull } from "./limit.js";
import css from "./limit.module.css";

export function LimitHeader({ limit }: { readonly limit: LimitPage }) {
  const { name, inForce, lanes } = limit;
  // Only the code says whether a limit has a key; a lane with one shows it.
  const isKeyed = lanes.some(({ key }) => key !== "");
  return (
    <header class={css.header}>
      <div class={css.title}>
        <h1>{escapeHidden(name)}</h1>
        <CopyButton text={name} what="the name of the limit" />
        <LimitActions limit={limit} />
      </div>
      <p class={css.rule} data-part="allows">
        Allows {allowances(inForce).join(", and ")}
        {isKeyed ? " for each key" : ""}
      </p>
      {limit.override === null ? null : <Overridden limit={limit} />}
      <Numbers limit={limit} />
    </header>
  );
}

function Overridden({ limit: { override, concurrency, rate } }: { readonly limit: Limit }) {
  if (override === null) return null;
  const { by, at, until, reason } = override;
  return (
    <div data-part="override">
      <Note tone="paused">
        <strong>Overridden{by === null ? "" : ` by ${escapeHidden(by)}`}</strong> <Time at={at} />
        {reason === null ? ", without a reason." : `: ${escapeHidden(reason)}`}{" "}
        {until === null ? (
          "It is in force until it is cleared."
        ) : (
          <>
            It ends by itself <Time at={until} />.
          </>
        )}{" "}
        The code allows {allowances({ concurrency, rate }).join(", and ")}.
      </Note>
    </div>
  );
}

function Numbers({ limit }: { readonly limit: Limit }) {
  const full = whenFull(limit);
  const held =
    limit.while === "open"
      ? "held from the first execution of a run to its end"
      : "held while a run or a step is executed";
  return (
    <dl class={css.numbers} data-part="numbers">
      <div>
        <dt>In use</dt>
        <dd>{formatCapped(limit.inUse, limit.inUseCapped)}</dd>
      </div>
      <div>
        <dt>Waiting</dt>
        <dd class={limit.waiting > 0 ? css.waiting : ""}>{formatCapped(limit.waiting, limit.waitingCapped)}</dd>
      </div>
      <div>
        <dt>A slot is</dt>
        <dd>{held}</dd>
      </div>
      {full === null ? null : (
        <div>
          <dt>When full</dt>
          <dd>{full}</dd>
        </div>
      )}
      <div>
        <dt>Known since</dt>
        <dd>
          <Time at={limit.createdAt} />
        </dd>
      </div>
    </dl>
  );
}
