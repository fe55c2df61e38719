'use client';

import type { DesiredLogLevel } from '@interlude/protocol/commands';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import { useClock } from '@/components/ui/clock';
import { formatAgoLong } from '@/components/ui/duration';
import { useTimeFormat } from '@/components/ui/time-format';
import { quoted } from '@/components/ui/verbatim';

/** The server doesn't know the reader's time zone. */
const UNKNOWN = '\u2007\u2007:\u2007\u2007:\u2007\u2007';
const TONE: Record<LevelText['tone'], string> = {
  plain: 'text-ink-2',
  waiting: 'text-waiting',
  failed: 'text-failed',
};

/** The current and the requested level. Screen readers announce changes, but not the ticking parts. */
export function LevelLine({ agent, className }: { agent: LevelSource; className?: string }) {
  const format = useTimeFormat();
  const clock = (at: number) => format?.time(at, true) ?? UNKNOWN;
  // Serialized, so that the component renders only when the text changes.
  const text = useClock((now) => JSON.stringify(levelText(agent, now, clock)));
  const { tone, parts } = JSON.parse(text) as LevelText;
  return (
    <span role="status" className={clsx('tabular [overflow-wrap:anywhere]', TONE[tone], className)}>
      {parts.map(({ text, ticking }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: parts have no other identity
        <span key={index} aria-live={ticking && 'off'}>
          {text}
        </span>
      ))}
    </span>
  );
}

/** The fields of an agent that describe its log level. */
export type LevelSource = Pick<AgentSummary, 'logLevel' | 'connection' | 'connectedSince'>;

interface LevelPart {
  text: string;
  /** Changes every second: not announced. */
  ticking?: true;
}

interface LevelText {
  tone: 'plain' | 'waiting' | 'failed';
  parts: LevelPart[];
}

type Clock = (at: number) => string;

/** The requested level; null once the request has expired, even before the server reports that. */
function desiredNow({ logLevel }: LevelSource, now: number): DesiredLogLevel | null {
  const { desired } = logLevel;
  return desired?.expiresAt != null && desired.expiresAt <= now ? null : desired;
}

/** @param clock formats a time in the reader's time zone */
export function levelText(agent: LevelSource, now: number, clock: Clock): LevelText {
  const desired = desiredNow(agent, now);
  if (desired === null) return { tone: 'plain', parts: written(agent, now, clock) };
  const { level, since, by, base } = agent.logLevel;
  const isAway = agent.connection === 'away';
  const name = desired.level ?? (base === null ? 'the default' : `the default (${base})`);
  const requested = [plain(`${name} requested`), ticks(` ${formatAgoLong(now - desired.requestedAt)}`)];
  if (desired.state === 'refused') {
    const writes = level === null ? '' : `; the runner logs at ${level}`;
    return {
      tone: 'failed',
      parts: [
        plain(`${name} refused: ${desired.reason === null ? 'no reason given' : quoted(desired.reason)}${writes}`),
      ],
    };
  }
  if (desired.state === 'requested') {
    const why = isAway ? `; waiting: ${awayText(agent, clock)}` : ', not confirmed by the runner yet';
    const remaining =
      desired.expiresAt === null ? [] : [plain('; expires in '), ticks(formatDuration(desired.expiresAt - now, true))];
    return { tone: 'waiting', parts: [...requested, plain(why), ...remaining] };
  }
  if (level === desired.level && since !== null) {
    const end = desired.expiresAt === null ? [plain(', until changed')] : back(base, desired.expiresAt - now);
    const away = isAway ? [plain(`; ${awayText(agent, clock)}`)] : [];
    return { tone: 'plain', parts: [plain(`${level} since ${clock(since)}`), ...end, ...away] };
  }
  // The runner acknowledged the request but has not reported the level yet.
  if (since === null || since < desired.requestedAt) {
    return { tone: 'waiting', parts: [...requested, plain(', acknowledged by the runner')] };
  }
  const setter = by === null ? '' : `, set by ${setBy(by)}`;
  const text = `the runner has reported ${level} since ${clock(since)}${setter}; ${name} was requested`;
  return { tone: 'waiting', parts: [plain(text)] };
}

/** The text without an open request: the runner's own level, or one that someone else has set. */
function written(agent: LevelSource, now: number, clock: Clock): LevelPart[] {
  const { level, since, by, until, base } = agent.logLevel;
  if (level === null) return [plain('the runner has not reported its level')];
  const isAway = agent.connection === 'away' && agent.connectedSince !== null;
  const away = isAway ? [plain(`; ${awayText(agent, clock)}`)] : [];
  if (by === null)
    return [
      plain(
        base === null ? `the runner writes ${level}${level === 'fatal' ? '' : ' and above'}` : `${level}, its default`,
      ),
      ...away,
    ];
  const from = since === null ? '' : ` since ${clock(since)}`;
  return [plain(`${level}${from}, set by ${setBy(by)}`), ...(until === null ? [] : back(base, until - now)), ...away];
}

/** @param by id of a person or agent, or a constant of the protocol */
function setBy(by: string): string {
  return by === 'control-port' || by === 'time-limit' ? by : quoted(by);
}

function awayText({ connectedSince }: LevelSource, clock: Clock): string {
  return connectedSince === null
    ? 'this agent’s runner has not connected yet'
    : `agent offline since ${clock(connectedSince)}`;
}

function back(base: string | null, leftMs: number): LevelPart[] {
  return [plain(`, back to ${base ?? 'its default'} in `), ticks(formatDuration(leftMs, true))];
}

function plain(text: string): LevelPart {
  return { text };
}

function ticks(text: string): LevelPart {
  return { text, ticking: true };
}
