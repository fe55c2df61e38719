'use client';

import type { DesiredLogLevel, LogLevelResponse } from '@interlude/protocol/commands';
import { DEBUG_TTL_SECONDS } from '@interlude/protocol/limits';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/vocabulary';
import { clsx } from 'clsx';
import { type KeyboardEvent, useRef, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { putJson, RequestError } from '@/components/live/fetch-json';
import { LevelLine } from './level-status';

/** Sets the log level of an agent's runner. The requested and the current level differ until the runner confirms. */
export function LevelSwitch({ agent }: { agent: AgentSummary }) {
  const mayAct = useMayAct();
  const { pending, failure, request } = useRequestLevel(agent);
  const { level, by, base, desired } = agent.logLevel;
  const target = pending ?? (desired?.state === 'refused' ? null : desired);
  const isSet = desired === null ? by !== null : desired.level !== null;
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5 text-xs">
      <LevelRadios
        requested={target === null ? level : (target.level ?? base)}
        written={level}
        isOff={!mayAct}
        onPick={(to) => request({ level: to })}
      />
      {mayAct && pending === null && desired !== null && desired.level !== null && desired.state !== 'refused' && (
        <LevelLimit desired={desired} onPick={(ttlSeconds) => request({ level: desired.level, ttlSeconds })} />
      )}
      {mayAct && isSet && pending === null && (
        <button type="button" onClick={() => request({ level: null })} className="text-ink-3 underline hover:text-ink">
          Back to default
        </button>
      )}
      {pending === null ? (
        <LevelLine agent={agent} />
      ) : (
        <span className="text-ink-3">requesting {pending.level ?? 'the default'}…</span>
      )}
      {!mayAct && <span className="text-ink-3">You don’t have permission to change the level.</span>}
      {failure !== null && (
        <span role="alert" className="text-failed">
          Request failed: {failure}
        </span>
      )}
    </div>
  );
}

interface LevelRequest {
  serial: number;
  choice: LevelChoice;
  /** The agent's row when the request was sent. */
  before: AgentSummary;
  isAnswered: boolean;
  failure: string | null;
}

/**
 * Requests a level from one agent's runner. The request is `pending` until the agent's row reflects it. The row is the
 * only source of the outcome.
 */
function useRequestLevel(agent: AgentSummary) {
  const [pendingRequest, setAsking] = useState<LevelRequest | null>(null);
  const request = async (choice: LevelChoice) => {
    const serial = (pendingRequest?.serial ?? 0) + 1;
    setAsking({ serial, choice, before: agent, isAnswered: false, failure: null });
    const result = await requestLevel(agent.id, choice);
    const failure = result.kind === 'failed' ? result.reason : null;
    // Ignores the response if a newer request was sent.
    setAsking((latest) => (latest?.serial === serial ? { ...latest, isAnswered: true, failure } : latest));
  };
  return {
    pending:
      pendingRequest !== null && pendingRequest.failure === null && !isReflected(pendingRequest, agent)
        ? pendingRequest.choice
        : null,
    failure: pendingRequest?.failure ?? null,
    request: (choice: LevelChoice) => void request(choice),
  };
}

function isReflected({ before, isAnswered }: LevelRequest, agent: AgentSummary): boolean {
  if (agent.logLevel.desired?.requestedAt !== before.logLevel.desired?.requestedAt) return true;
  // The runner may confirm before this component sees the request, and a return to the default leaves no request.
  return isAnswered && agent.updatedPosition !== before.updatedPosition;
}

const CHOICES: readonly { seconds: number | null; words: string }[] = [
  { seconds: DEBUG_TTL_SECONDS, words: '15 min' },
  { seconds: 3_600, words: '1 h' },
  { seconds: 8 * 3_600, words: '8 h' },
  { seconds: null, words: 'until changed' },
];

/** The time limit of the level. A new choice restarts it. */
function LevelLimit(props: {
  desired: Pick<DesiredLogLevel, 'requestedAt' | 'expiresAt'>;
  onPick: (ttlSeconds: number | null) => void;
}) {
  const { requestedAt, expiresAt } = props.desired;
  const seconds = expiresAt === null ? null : Math.round((expiresAt - requestedAt) / 1_000);
  const isOther = !CHOICES.some((choice) => choice.seconds === seconds);
  return (
    <label className="flex items-center gap-1.5 text-ink-3 text-xs">
      <span className="sr-only">Time limit</span>
      <select
        value={String(seconds)}
        onChange={(event) => props.onPick(event.target.value === 'null' ? null : Number(event.target.value))}
        className="h-6 rounded border border-line-strong bg-ground px-1 text-ink-2 hover:text-ink"
      >
        {isOther && <option value={String(seconds)}>{formatDuration((seconds ?? 0) * 1_000)}</option>}
        {CHOICES.map((choice) => (
          <option key={choice.words} value={String(choice.seconds)}>
            {choice.words}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The log levels. Arrow keys only move the focus, because selecting a level changes the runner. */
export function LevelRadios(props: {
  /** The requested level, or the current one if none is requested. */
  requested: LogLevel | null;
  /** The level that the runner reports. */
  written: LogLevel | null;
  /** True if the level can't be changed. */
  isOff?: boolean;
  onPick: (level: LogLevel) => void;
}) {
  const { requested, written, isOff = false, onPick } = props;
  const group = useRef<HTMLDivElement>(null);
  const focused = requested ?? 'debug';
  const move = (event: KeyboardEvent, from: number) => {
    const to = targetOf(event.key, from);
    if (to === null) return;
    event.preventDefault();
    group.current?.querySelectorAll<HTMLElement>('[role="radio"]')[to]?.focus();
  };
  return (
    <div
      ref={group}
      role="radiogroup"
      aria-label="Runner log level"
      className="flex flex-wrap rounded border border-line-strong"
    >
      {LOG_LEVELS.map((level, index) => (
        // biome-ignore lint/a11y/useSemanticElements: arrow keys would select a native radio
        <button
          key={level}
          type="button"
          role="radio"
          aria-checked={level === requested}
          tabIndex={level === focused ? 0 : -1}
          title={level === written ? 'current level' : undefined}
          aria-disabled={isOff}
          onClick={() => !isOff && onPick(level)}
          onKeyDown={(event) => move(event, index)}
          className={clsx(
            'h-6 px-2 text-xs first:rounded-l-[3px] last:rounded-r-[3px]',
            isOff
              ? 'cursor-default text-ink-3'
              : level === written
                ? 'bg-ink text-ground'
                : 'text-ink-2 hover:bg-raised hover:text-ink',
            level === requested && level !== written && 'font-medium text-waiting underline decoration-dotted',
          )}
        >
          {level}
        </button>
      ))}
    </div>
  );
}

function targetOf(key: string, from: number): number | null {
  const last = LOG_LEVELS.length - 1;
  if (key === 'ArrowRight' || key === 'ArrowDown') return from === last ? 0 : from + 1;
  if (key === 'ArrowLeft' || key === 'ArrowUp') return from === 0 ? last : from - 1;
  if (key === 'Home') return 0;
  return key === 'End' ? last : null;
}

export interface LevelChoice {
  /** Null for the runner's default. */
  level: LogLevel | null;
  /** Null for no limit; omitted for the level's default. */
  ttlSeconds?: number | null;
}

type LevelAnswer = { kind: 'sent' } | { kind: 'failed'; reason: string };

/** Requests a level from an agent's runner. Safe to repeat: the newest request wins. */
export async function requestLevel(agentId: string, choice: LevelChoice): Promise<LevelAnswer> {
  const path = `/agents/${encodeURIComponent(agentId)}/log-level`;
  try {
    await putJson<LogLevelResponse>(path, choice);
    return { kind: 'sent' };
  } catch (error) {
    const reason = error instanceof RequestError ? error.message : 'The server can’t be reached. Try again.';
    return { kind: 'failed', reason };
  }
}
