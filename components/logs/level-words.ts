import { formatClock } from '@/components/ui/duration';
import type { AgentSummary, DesiredLogLevel } from '@/lib/protocol/read-models';

/** What the page knows of one agent's level: what is written, and what was asked. */
export type LevelSource = Pick<AgentSummary, 'logLevel' | 'connection' | 'connectedSince'>;

export interface LevelWords {
  tone: 'plain' | 'waiting' | 'failed';
  text: string;
  /** The same without what ticks, for whoever hears it. */
  heard: string;
}

/** What is asked as of now: a wish whose time is over is none, though the server may take a second to say so. */
export function desiredNow({ logLevel }: LevelSource, now: number): DesiredLogLevel | null {
  const { desired } = logLevel;
  return desired?.expiresAt != null && desired.expiresAt <= now ? null : desired;
}

/** @param clock a time as the reader's wall clock has it */
export function levelWords(agent: LevelSource, now: number, clock: (at: number) => string): LevelWords {
  const desired = desiredNow(agent, now);
  if (desired === null) return written(agent, now, clock);
  const { level, since, by, base } = agent.logLevel;
  const name = desired.level ?? (base === null ? 'the default' : `the default (${base})`);
  const asked = `${name} requested ${ago(now - desired.requestedAt)}`;
  if (desired.state === 'refused') {
    const heard = `${name} refused: ${desired.reason ?? 'the runner did not say why'}`;
    return { tone: 'failed', heard, text: level === null ? heard : `${heard}. The runner writes ${level}.` };
  }
  if (desired.state === 'requested') {
    const waits = agent.connection === 'away';
    const heard = waits ? `${name} requested, waits for the agent` : `${name} requested`;
    const why = waits ? `; waits: ${awayWords(agent, clock)}` : ', the agent has not answered yet';
    const left = desired.expiresAt === null ? '' : `; over in ${formatClock(desired.expiresAt - now)}`;
    return { tone: 'waiting', heard, text: `${asked}${why}${left}` };
  }
  if (level === desired.level && since !== null) {
    const end = desired.expiresAt === null ? ', until it is changed' : back(base, desired.expiresAt - now);
    const away = agent.connection === 'away' ? `; ${awayWords(agent, clock)}` : '';
    return { tone: 'plain', heard: `${level} confirmed`, text: `${level} since ${clock(since)}${end}${away}` };
  }
  // It has turned it, and has not told since that it writes anything else.
  if (since === null || since < desired.requestedAt) {
    return { tone: 'waiting', heard: `${name} requested, agent confirms`, text: `${asked}, agent confirms` };
  }
  const whom = by === null ? '' : `, set by ${by}`;
  const heard = `the runner says ${level}${whom}, not ${name}`;
  return {
    tone: 'waiting',
    heard,
    text: `the runner says ${level} since ${clock(since)}${whom}; ${name} was asked for`,
  };
}

/** Nothing is asked: what the runner writes of its own accord, or at somebody else's word. */
function written(agent: LevelSource, now: number, clock: (at: number) => string): LevelWords {
  const { level, since, by, until, base } = agent.logLevel;
  if (level === null) {
    const heard = 'the runner has not said what it writes';
    return { tone: 'plain', heard, text: heard };
  }
  const away = agent.connection === 'away' && agent.connectedSince !== null ? `; ${awayWords(agent, clock)}` : '';
  if (by === null) {
    const text = base === null ? `${level}, by its own word` : `${level}, its default`;
    return { tone: 'plain', heard: text, text: `${text}${away}` };
  }
  const from = since === null ? '' : ` since ${clock(since)}`;
  const end = until === null ? '' : back(base, until - now);
  const heard = `${level}, set by ${by}`;
  return { tone: 'plain', heard, text: `${level}${from}, set by ${by}${end}${away}` };
}

function awayWords({ connectedSince }: LevelSource, clock: (at: number) => string): string {
  return connectedSince === null
    ? 'no runner of this agent has ever listened'
    : `the agent is away since ${clock(connectedSince)}`;
}

function back(base: string | null, leftMs: number): string {
  return `, back to ${base ?? 'its default'} in ${formatClock(leftMs)}`;
}

function ago(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 1) return 'just now';
  if (seconds < 60) return `${seconds} s ago`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ago` : `${Math.floor(minutes / 60)} h ${minutes % 60} min ago`;
}
