'use client';

import type { RequestItem, ToolCallItem } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import {
  Bot,
  CircleHelp,
  FileDiff,
  FileText,
  FolderSearch,
  Globe,
  type IconNode,
  ListTodo,
  Search,
  SquareTerminal,
  Timer,
  Wrench,
} from 'lucide';
import { memo, useEffect, useMemo, useReducer, useState } from 'react';
import { useHasPassed } from '@/components/ui/clock';
import { RunningClock } from '@/components/ui/day';
import { plural } from '@/components/ui/duration';
import { Glyph, type GlyphName } from '@/components/ui/glyph';
import { Icon } from '@/components/ui/icon';
import { enqueueIdle } from '@/components/ui/idle-queue';
import { useLiveness } from '@/components/ui/liveness';
import { Name } from '@/components/ui/name';
import { TerminalText } from '@/components/ui/terminal-text';
import { UnfoldButton, useDisclosure } from '@/components/ui/unfold';
import { type CallState, callState } from './call-state';
import { changedFiles, changesOf, countedEdits, diffAtOnce, diffOf } from './edits';
import { ToolDiff } from './tool-diff';
import { ToolInput } from './tool-input';
import { mainArgument, toolName } from './tool-words';

/** A tool call on one line, which unfolds to its input and result. */
export const ToolCallLine = memo(function ToolCallLine(props: {
  call: ToolCallItem;
  /** The last request about the call. */
  request: RequestItem | undefined;
  inCard?: boolean;
}) {
  const { call, request, inCard = false } = props;
  const { open, id, button } = useDisclosure();
  // The card's title already shows the description.
  const argument = mainArgument(call, inCard ? 'description' : undefined);
  return (
    <div>
      <button
        type="button"
        {...button}
        className="-mx-1.5 flex w-[calc(100%+12px)] min-w-0 items-center gap-2 rounded px-1.5 py-[3px] text-left text-xs hover:bg-raised/70"
      >
        <ToolIcon name={call.name} />
        <span className="max-w-[60%] shrink-0 truncate text-ink-2">
          <Name text={toolName(call.name)} max={80} layout="tool" />
        </span>
        <Argument text={argument} />
        <EditCount call={call} />
        <CallStatus call={call} request={request} />
      </button>
      {open && (
        <div id={id} className="mt-1 mb-3 ml-[6px] space-y-2 border-l pl-[15px]">
          <ToolInput call={call} />
          <TruncatedNote cut={call.cut} />
          {call.edits !== undefined && <ToolChanges call={call} />}
          {call.result !== null && call.result !== '' && <TerminalText text={call.result} label="output" />}
          {call.result === '' && <p className="text-ink-3 text-xs">No output.</p>}
          {call.result === null && call.status !== 'running' && <p className="text-ink-3 text-xs">No result.</p>}
        </div>
      )}
    </div>
  );
});

/** A cut path keeps its end: the file name. */
function Argument({ text }: { text: string }) {
  const [, folder, file] = /^((?:[\w.@~-]*\/)+)([^/\s]+)$/.exec(text) ?? [];
  if (folder === undefined || file === undefined) {
    return (
      <span className="min-w-0 flex-1 truncate font-mono text-ink-3">
        <Name text={text} />
      </span>
    );
  }
  return (
    <span className="flex min-w-0 flex-1 font-mono text-ink-3">
      <span className="min-w-0 truncate">
        <Name text={folder} />
      </span>
      <span className="max-w-[70%] shrink-0 truncate text-ink-2">
        <Name text={file} layout="tool" />
      </span>
    </span>
  );
}

/** Shorter calls don't show their duration. */
const NOTABLE_MS = 1_000;

/** State of a call. A running call has a clock; one that waits for a person has none. */
function CallStatus({ call, request }: { call: ToolCallItem; request: RequestItem | undefined }) {
  const { stopped } = useLiveness();
  const state = callState(call, request, useHasPassed(request?.expiresAt ?? null));
  // Nothing ran while the call waited for a person.
  const isAllowed = request?.outcome === 'allowed' || request?.outcome === 'answered';
  const startedAt = isAllowed ? (request.resolvedAt ?? call.at) : call.at;
  const took = call.endedAt === null ? null : call.endedAt - startedAt;
  // The agent that asked has ended.
  const isAbandoned = state === 'waiting' && stopped !== null;
  const label = isAbandoned ? undefined : LABELS[state];
  const ran = state === 'completed' || state === 'failed';
  return (
    <span className="tabular flex shrink-0 items-center gap-1.5 text-2xs text-ink-3">
      {state === 'running' && (
        <>
          <RunningClock since={startedAt} />
          <Glyph name="running" />
          <span className="sr-only">{stopped === null ? 'running' : stopped.why}</span>
        </>
      )}
      {isAbandoned && (
        <>
          <Glyph name="lost" />
          <span className="sr-only">{stopped.why}</span>
        </>
      )}
      {ran && took !== null && took >= NOTABLE_MS && <span>{formatDuration(took)}</span>}
      {state === 'completed' && <span className="sr-only">completed</span>}
      {label !== undefined && (
        <span className={clsx('flex items-center gap-1', label.className)}>
          {label.word}
          <Glyph name={label.glyph} />
        </span>
      )}
    </span>
  );
}

const LABELS: Partial<Record<CallState, { word: string; glyph: GlyphName; className: string }>> = {
  failed: { word: 'failed', glyph: 'failed', className: 'text-failed' },
  waiting: { word: 'waiting for you', glyph: 'waiting', className: 'text-waiting' },
  denied: { word: 'denied', glyph: 'stopped', className: 'text-ink-2' },
  expired: { word: 'expired', glyph: 'lost', className: 'text-ink-2' },
  unknown: { word: 'no result', glyph: 'lost', className: 'text-ink-2' },
  withdrawn: { word: 'withdrawn', glyph: 'lost', className: 'text-ink-2' },
};

/** Files shown at first and added per press. */
const STEP = 10;
/** Longest path: agents cut longer ones. */
const PATH_CHARACTERS = 1_000;

/** The reported changes of a call, file by file. */
export function ToolChanges({ call }: { call: Pick<ToolCallItem, 'name' | 'args' | 'edits'> }) {
  const { name, args, edits } = call;
  const [max, setMax] = useState(STEP);
  const files = useMemo(() => {
    const changes = changesOf({ edits });
    return changes === null ? [] : changedFiles({ name, args, edits }, changes, diffOf(changes, edits as object));
  }, [name, args, edits]);
  const left = files.length - max;
  return (
    <>
      {files.slice(0, max).map(({ path, edits: own, diff }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a file may appear twice, and none moves
        <figure key={index}>
          <figcaption className="mb-0.5 font-mono text-2xs text-ink-3 [overflow-wrap:anywhere]">
            <Name text={path} max={PATH_CHARACTERS} />
          </figcaption>
          <ToolDiff edits={own} diff={diff} />
        </figure>
      ))}
      {left > 0 && (
        <UnfoldButton onPress={() => setMax(max + STEP)} className="text-2xs text-ink-2">
          Show {Math.min(left, STEP)} of {left.toLocaleString('en')} more files
        </UnfoldButton>
      )}
    </>
  );
}

/** Lines that an edit adds and removes: `+12 −3`. Coloured once the edit is made. */
export function EditCount({ call }: { call: ToolCallItem }) {
  const { name, args, edits: changed, status } = call;
  const counted = useMemo(
    () => countedEdits({ name, args, ...(changed === undefined ? {} : { edits: changed }) }),
    [name, args, changed],
  );
  const [, compared] = useReducer((count: number) => count + 1, 0);
  const diff = counted === null ? null : diffAtOnce(counted.edits, counted.of);
  const isAbandoned = counted !== null && diff === null;
  useEffect(() => {
    if (!isAbandoned) return;
    const turn = enqueueIdle(() => {
      diffOf(counted.edits, counted.of);
      compared();
    });
    return () => turn.cancel();
  }, [isAbandoned, counted]);
  if (counted === null || diff === null) return null;
  const { edits } = counted;
  const { added, removed } = diff;
  const isMade = status === 'completed';
  return (
    <span className="tabular flex shrink-0 gap-1.5 font-mono text-2xs text-ink-3">
      <span className="sr-only">{inWords(added, edits.isWholeFile ? null : removed)}</span>
      <span aria-hidden="true" className={clsx(isMade && added > 0 && 'text-working')}>
        +{added.toLocaleString('en')}
      </span>
      {!edits.isWholeFile && (
        <span aria-hidden="true" className={clsx(isMade && removed > 0 && 'text-failed')}>
          −{removed.toLocaleString('en')}
        </span>
      )}
    </span>
  );
}

/** @param removed null if unknown */
function inWords(added: number, removed: number | null): string {
  const lines = plural(added, 'line');
  return removed === null ? `${lines} written` : `${lines} added, ${removed.toLocaleString('en')} removed`;
}

const ICONS: [RegExp, IconNode][] = [
  [/^(?:bash|shell|terminal|exec|powershell|monitor)/i, SquareTerminal],
  [/^(?:edit|multiedit|write|notebookedit|apply_patch|str_replace)/i, FileDiff],
  [/^(?:read|view|cat|open)/i, FileText],
  [/^(?:grep|search|rg)/i, Search],
  [/^(?:glob|ls|list|find)/i, FolderSearch],
  [/^web/i, Globe],
  [/^(?:task(?:create|update|get|list)|todo)/i, ListTodo],
  [/^(?:agent|task)/i, Bot],
  [/^(?:askuser|question)/i, CircleHelp],
  [/^(?:cron|schedule|sleep|wait)/i, Timer],
];

function ToolIcon({ name }: { name: string }) {
  const icon = ICONS.find(([pattern]) => pattern.test(name))?.[1] ?? Wrench;
  return <Icon of={icon} size={13} strokeWidth={1.75} className="shrink-0 text-ink-3" />;
}

/** Length of the text that the server leaves out of an endless stream. */
export function TruncatedNote({ cut = 0 }: { cut?: number }) {
  if (cut === 0) return null;
  return <p className="tabular my-1 text-ink-3 text-xs">… and {cut.toLocaleString('en')} more characters not shown.</p>;
}
