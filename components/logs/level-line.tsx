'use client';

import type { DesiredLogLevel } from '@interlude/protocol/log-levels';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { agoInWords, formatClock } from '@/components/ui/duration';
import { useHydrated, useNow } from '@/components/ui/now';
import { quoted } from '@/components/ui/verbatim';
import { clockTime } from './log-settings';

/** Nothing is known of the reader's own clock before the browser has taken over. */
const UNKNOWN = '\u2007\u2007:\u2007\u2007:\u2007\u2007';
const TONE: Record<LevelWords['tone'], string> = {
  plain: 'text-ink-2',
  waiting: 'text-waiting',
  failed: 'text-failed',
};

/** What is written and what was asked, in words, as of this second. What changes is heard, but for what only ticks. */
export function LevelLine({ agent, className }: { agent: LevelSource; className?: string }) {
  const isHydrated = useHydrated();
  const clock = (at: number) => (isHydrated ? clockTime(at) : UNKNOWN);
  // As text, because only a change of what is said should render.
  const said = useNow((now) => JSON.stringify(levelWords(agent, now, clock)));
  const { tone, parts } = JSON.parse(said) as LevelWords;
  return (
    <span role="status" className={clsx('tabular [overflow-wrap:anywhere]', TONE[tone], className)}>
      {parts.map(({ text, ticks }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a part is known by its place
        <span key={at} aria-live={ticks && 'off'}>
          {text}
        </span>
      ))}
    </span>
  );
}

/** What the page knows of one agent's level: what is written, and what was asked. */
export type LevelSource = Pick<AgentSummary, 'logLevel' | 'connection' | 'connectedSince'>;

interface LevelPart {
  text: string;
  /** It is another every second, and no news to anybody. */
  ticks?: true;
}

interface LevelWords {
  tone: 'plain' | 'waiting' | 'failed';
  parts: LevelPart[];
}

type Clock = (at: number) => string;

/** What is asked as of now: a wish whose time is over is none, though the server may take a second to say so. */
function desiredNow({ logLevel }: LevelSource, now: number): DesiredLogLevel | null {
  const { desired } = logLevel;
  return desired?.expiresAt != null && desired.expiresAt <= now ? null : desired;
}

/** @param clock a time as the reader's wall clock has it */
export function levelWords(agent: LevelSource, now: number, clock: Clock): LevelWords {
  const desired = desiredNow(agent, now);
  if (desired === null) return { tone: 'plain', parts: written(agent, now, clock) };
  const { level, since, by, base } = agent.logLevel;
  const isAway = agent.connection === 'away';
  const name = desired.level ?? (base === null ? 'the default' : `the default (${base})`);
  const asked = [says(`${name} requested`), ticks(` ${agoInWords(now - desired.requestedAt)}`)];
  if (desired.state === 'refused') {
    const writes = level === null ? '' : `; the runner writes ${level}`;
    return {
      tone: 'failed',
      parts: [
        says(
          `${name} refused: ${desired.reason === null ? 'the runner did not say why' : quoted(desired.reason)}${writes}`,
        ),
      ],
    };
  }
  if (desired.state === 'requested') {
    const why = isAway ? `; waits: ${awayWords(agent, clock)}` : ', the agent has not answered yet';
    const left = desired.expiresAt === null ? [] : [says('; over in '), ticks(formatClock(desired.expiresAt - now))];
    return { tone: 'waiting', parts: [...asked, says(why), ...left] };
  }
  if (level === desired.level && since !== null) {
    const end = desired.expiresAt === null ? [says(', until it is changed')] : back(base, desired.expiresAt - now);
    const away = isAway ? [says(`; ${awayWords(agent, clock)}`)] : [];
    return { tone: 'plain', parts: [says(`${level} since ${clock(since)}`), ...end, ...away] };
  }
  // It has turned it, and has not told since that it writes anything else.
  if (since === null || since < desired.requestedAt) {
    return { tone: 'waiting', parts: [...asked, says(', agent confirms')] };
  }
  const whom = by === null ? '' : `, set by ${setBy(by)}`;
  const text = `the runner says ${level} since ${clock(since)}${whom}; ${name} was asked for`;
  return { tone: 'waiting', parts: [says(text)] };
}

/** Nothing is asked: what the runner writes of its own accord, or at somebody else's word. */
function written(agent: LevelSource, now: number, clock: Clock): LevelPart[] {
  const { level, since, by, until, base } = agent.logLevel;
  if (level === null) return [says('the runner has not said what it writes')];
  const isGone = agent.connection === 'away' && agent.connectedSince !== null;
  const away = isGone ? [says(`; ${awayWords(agent, clock)}`)] : [];
  if (by === null) return [says(base === null ? `${level}, by its own word` : `${level}, its default`), ...away];
  const from = since === null ? '' : ` since ${clock(since)}`;
  return [says(`${level}${from}, set by ${setBy(by)}`), ...(until === null ? [] : back(base, until - now)), ...away];
}

/** @param by a person's or an agent's id, or a constant of the protocol */
function setBy(by: string): string {
  return by === 'control-port' || by === 'time-limit' ? by : quoted(by);
}

function awayWords({ connectedSince }: LevelSource, clock: Clock): string {
  return connectedSince === null
    ? 'no runner of this agent has ever listened'
    : `the agent is away since ${clock(connectedSince)}`;
}

function back(base: string | null, leftMs: number): LevelPart[] {
  return [says(`, back to ${base ?? 'its default'} in `), ticks(formatClock(leftMs))];
}

function says(text: string): LevelPart {
  return { text };
}

function ticks(text: string): LevelPart {
  return { text, ticks: true };
}
