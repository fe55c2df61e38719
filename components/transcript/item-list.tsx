'use client';

import type {
  Item,
  NoticeItem,
  PlanItem,
  ReasoningItem,
  RequestItem,
  TaskItem,
  ToolCallItem,
} from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import { ChevronRight, CircleAlert, Info, ListChecks, TriangleAlert } from 'lucide';
import { Fragment, memo, type ReactNode, useContext, useMemo, useState } from 'react';
import { SessionLink } from '@/components/sessions/session-link';
import { RunningClock } from '@/components/ui/day';
import { plural } from '@/components/ui/duration';
import { Icon } from '@/components/ui/icon';
import { longRunClass } from '@/components/ui/line-breaks';
import { Markdown } from '@/components/ui/markdown/markdown';
import { Phrase, Words } from '@/components/ui/name';
import { useProgressiveRows } from '@/components/ui/row-window';
import { UnfoldButton, useDisclosure } from '@/components/ui/unfold';
import { type RequestLookup, requestsByCall, useDetachedRequests } from './call-state';
import { FirstPaint } from './first-paint';
import {
  callsOfTasks,
  FIRST_PAINT_ROWS,
  type ItemRow,
  LONGEST_RUN,
  MORE_ROWS,
  rowKey,
  rowOf,
  rowsAround,
  rowsOf,
  rowWeight,
  sectionsOf,
  TargetAnchor,
  TURN_ROWS,
} from './item-rows';
import { MessageView } from './message-view';
import { explicitReplies } from './reply-link';
import { FIRST_WEIGHT } from './row-weight';
import { ToolCallLine, TruncatedNote } from './tool-call-line';
import { ToolTodos } from './tool-todos';
import { todosOfPlan, todosText } from './tool-words';

interface ItemListProps {
  items: readonly Item[];
  /** End of the last item, if known. */
  endedAt: number | null;
  /** True if user messages in this list still wait for their turn. */
  queued?: boolean;
  /** Renders a task's card, or a line for its end. `call` is the tool call that started it, shown in the card. */
  renderTask: (item: TaskItem, call: ReactNode) => ReactNode;
  renderRequest: (item: RequestItem) => ReactNode;
  /** Id of the tool call that started a task. */
  startedBy: (item: TaskItem) => string | null;
}

/**
 * The items of a turn in order. Consecutive tool calls form a tight list. A call that started a task is part of the
 * task's card. The middle of a very long turn is left out until the reader asks for it or a link leads there.
 */
export function ItemList(props: ItemListProps) {
  const { items, endedAt, queued = false, renderTask, renderRequest, startedBy } = props;
  const calls = useMemo(() => callsOfTasks(items, startedBy), [items, startedBy]);
  const rows = useMemo(() => rowsOf(items, calls), [items, calls]);
  const elsewhere = useDetachedRequests();
  const requests = useMemo((): RequestLookup => {
    const own = requestsByCall(items);
    return { get: (callId) => own.get(callId) ?? elsewhere.get(callId) };
  }, [items, elsewhere]);
  const [opened, setOpened] = useState<readonly (readonly [number, number])[]>([]);
  const target = useContext(TargetAnchor);
  const targetRow = useMemo(() => rowOf(rows, items, target), [rows, items, target]);
  const isFirstPaint = useContext(FirstPaint) !== null;
  const limits = isFirstPaint ? FIRST_PAINT_ROWS : TURN_ROWS;

  const lastOutput = useMemo(() => items.findLastIndex(isOutput), [items]);

  const renderRow = ({ at, run }: ItemRow) => {
    // Only the agent's last text can still grow. No event ends a text that arrives in chunks.
    const item = at === lastOutput ? (items[at] as Item) : settled(items[at] as Item);
    if (run !== null) return <ToolRun key={item.position} calls={run} requests={requests} />;
    const call = item.kind === 'task' ? calls.get(item) : undefined;
    return (
      <Fragment key={`${item.kind}:${item.position}`}>
        {item.kind === 'message' && (
          <MessageView item={item} queued={queued && item.role === 'user'} answers={explicitReplies(items, at)} />
        )}
        {item.kind === 'message' && <TruncatedNote cut={item.cut} />}
        {item.kind === 'reasoning' && <ReasoningLine item={item} until={items[at + 1]?.at ?? endedAt} />}
        {item.kind === 'request' && renderRequest(item)}
        {item.kind === 'plan' && <PlanLine item={item} />}
        {item.kind === 'notice' && <NoticeLine item={item} />}
        {item.kind === 'task' &&
          renderTask(
            item,
            call === undefined ? null : <ToolCallLine call={call} request={requests.get(call.id)} inCard />,
          )}
      </Fragment>
    );
  };
  const stretches = useMemo(() => {
    const steps = targetRow === null ? opened : [...opened, rowsAround(targetRow)];
    return sectionsOf(rows.length, limits, steps);
  }, [rows, limits, opened, targetRow]);
  const shown = useMemo(
    () => stretches.flatMap(({ from, to, isShown }) => (isShown ? rows.slice(from, to) : [])),
    [stretches, rows],
  );
  const waiting = useProgressiveRows(shown, {
    keyOf: (row) => rowKey(row, items),
    weightOf: (row) => rowWeight(row, items),
    firstWeight: FIRST_WEIGHT,
  });
  return stretches.map(({ from, to, isShown }) =>
    isShown ? (
      rows.slice(from, to).map((row) => (waiting.has(row) ? null : renderRow(row)))
    ) : (
      <LeftOut
        key={`left-out:${from}`}
        count={to - from}
        onMore={() => setOpened([...opened, [from, from + MORE_ROWS]])}
      />
    ),
  );
}

/** True for what the agent itself writes and does, which ends the text before it. */
function isOutput(item: Item): boolean {
  return item.kind === 'message' ? item.role === 'assistant' : !['task', 'notice'].includes(item.kind);
}

/** Cached, because rows render again when their item is another object. */
const ended = new WeakMap<Item, Item>();

function settled(item: Item): Item {
  if (!('streaming' in item) || !item.streaming) return item;
  const known = ended.get(item) ?? { ...item, streaming: false };
  ended.set(item, known);
  return known;
}

function LeftOut({ count, onMore }: { count: number; onMore: () => void }) {
  const next = Math.min(count, MORE_ROWS);
  return (
    <p className="my-2 flex items-baseline gap-3 text-ink-3 text-xs">
      <span className="tabular">… and {count.toLocaleString('en')} more</span>
      <UnfoldButton onPress={onMore}>Show {next === count ? 'them' : `the next ${next}`}</UnfoldButton>
    </p>
  );
}

/** Notices are short, but agents can put anything into one. */
const MAX_CHARACTERS = 4_000;

const ICON = { info: Info, warning: TriangleAlert, error: CircleAlert };
const COLOUR = { info: 'text-ink-3', warning: 'text-waiting', error: 'text-failed' };

/** A notice at this place: lost records, a quarantined record, the end of the agent. */
function NoticeLine({ item }: { item: NoticeItem }) {
  return (
    <p className={clsx('my-1.5 flex items-start gap-2 text-xs', COLOUR[item.tone])}>
      <Icon of={ICON[item.tone]} size={13} strokeWidth={1.75} className="mt-[2.5px] shrink-0" />
      <span dir="auto" className={clsx('[overflow-wrap:anywhere]', longRunClass(item.text.slice(0, MAX_CHARACTERS)))}>
        <Words text={item.text} max={MAX_CHARACTERS} />
        {item.ofSessionId !== undefined && (
          <>
            {' '}
            <SessionLink id={item.ofSessionId} />
          </>
        )}
      </span>
    </p>
  );
}

/** The agent's plan: one line with its progress, which unfolds to the list. */
export const PlanLine = memo(function PlanLine({ item }: { item: PlanItem }) {
  const { open, id, button } = useDisclosure();
  const plan = useMemo(() => todosOfPlan(item.entries), [item.entries]);
  return (
    <div className="my-1.5">
      <button
        type="button"
        {...button}
        className="-mx-1.5 flex w-[calc(100%+12px)] min-w-0 items-center gap-2 rounded px-1.5 py-[3px] text-left text-xs hover:bg-raised/70"
      >
        <Icon of={ListChecks} size={13} strokeWidth={1.75} className="shrink-0 text-ink-3" />
        <span className="shrink-0 text-ink-2">Plan</span>
        <span className="tabular min-w-0 flex-1 truncate text-ink-3">
          <Phrase text={todosText(plan)} />
        </span>
      </button>
      {open && (
        <div id={id} className="mt-1 mb-3 ml-[6px] space-y-2 border-l pl-[15px]">
          <ToolTodos todos={plan.todos} />
          {item.omitted !== undefined && (
            <p className="tabular text-2xs text-ink-3">… and {item.omitted.toLocaleString('en')} more are not shown.</p>
          )}
        </div>
      )}
    </div>
  );
});

/** The agent's reasoning, folded. `until` is the start of the next item. */
const ReasoningLine = memo(function ReasoningLine({ item, until }: { item: ReasoningItem; until: number | null }) {
  const { open, id, button } = useDisclosure();
  return (
    <div>
      <button
        type="button"
        {...button}
        className="-mx-1.5 flex items-center gap-2 rounded px-1.5 py-[3px] text-ink-3 text-xs hover:text-ink"
      >
        <Icon
          of={ChevronRight}
          size={13}
          aria-hidden="true"
          className={clsx('transition-transform', open && 'rotate-90')}
        />
        {item.streaming ? (
          <span className="tabular flex gap-1.5">
            Thinking <RunningClock since={item.at} />
          </span>
        ) : (
          <span className="tabular">
            Thought{until === null || until - item.at < 100 ? '' : ` for ${formatDuration(until - item.at)}`}
          </span>
        )}
      </button>
      {open && (
        <div id={id} className="mt-1 mb-3 ml-[6px] border-l pl-[15px] text-ink-2">
          <Markdown text={item.text} streaming={item.streaming} className="text-sm!" />
          <TruncatedNote cut={item.cut} />
        </div>
      )}
    </div>
  );
});

/** Number of calls added per press. */
const MORE = 100;
const HEAD = 4;
const TAIL = 6;

/** Consecutive tool calls with their requests. */
function ToolRun(props: { calls: readonly ToolCallItem[]; requests: RequestLookup }) {
  const { calls, requests } = props;
  const [steps, setSteps] = useState(0);
  const headCount = HEAD + steps * MORE;
  const folded = calls.length > Math.max(LONGEST_RUN, headCount + TAIL);
  const head = folded ? calls.slice(0, headCount) : calls;
  const tail = folded ? calls.slice(-TAIL) : [];
  const hidden = calls.length - head.length - tail.length;
  return (
    <div className="my-1.5">
      {head.map((call) => (
        <ToolCallLine key={call.id} call={call} request={requests.get(call.id)} />
      ))}
      {hidden > 0 && (
        <UnfoldButton onPress={() => setSteps(steps + 1)} className="py-[3px] pl-[21px] text-ink-3 text-xs">
          {hidden <= MORE
            ? `Show ${plural(hidden, 'more call')}`
            : `Show ${MORE} of ${hidden.toLocaleString('en')} more calls`}
        </UnfoldButton>
      )}
      {tail.map((call) => (
        <ToolCallLine key={call.id} call={call} request={requests.get(call.id)} />
      ))}
    </div>
  );
}
