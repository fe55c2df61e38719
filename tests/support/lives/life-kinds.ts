import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { isNothing, NOTHING_OPEN, type OpenWork, workAfter } from '@interlude/protocol/lifecycle/open-session';
import { RECORDED_KINDS, type RecordedLine } from '@interlude/runner/adapters/recordings';
import { SteppedTerminal, stepsIn } from '../play-case';
import { recordedLines } from '../recordings';

/**
 * Detection of an agent's death:
 * - `child`: the runner started the process and sees its exit at once
 * - `process`: the runner checks for the process every five seconds
 * - `address`: the runner polls the agent's address every five seconds
 * - `promise`: the agent is its own runner and has promised reports
 */
type Watch = 'child' | 'process' | 'address' | 'promise';

export interface LifeKind {
  /** Adapter folder. */
  adapter: string;
  recordings: readonly string[];
  watch: Watch;
  /** A bridge between runner and agent can die separately. */
  hasBridge?: boolean;
}

export const LIFE_KINDS = {
  claude: {
    adapter: 'claude',
    recordings: ['3bg', 'agents', 'bash-bg', 'bash-bg-min', 'midturn-text', 'perm', 'race', 'stoptask'],
    watch: 'child',
  },
  terminal: { adapter: 'hooks', recordings: [], watch: 'process' },
  codex: {
    adapter: 'codex',
    recordings: ['background', 'error', 'goal', 'patch', 'permission', 'question', 'steer', 'subagent-v2', 'tool'],
    watch: 'child',
  },
  'codex-attached': {
    adapter: 'codex',
    recordings: ['background', 'permission', 'terminal-second-client', 'subagent-v2', 'wake'],
    watch: 'address',
  },
  opencode: {
    adapter: 'opencode',
    recordings: ['background', 'error-retry', 'permission', 'question', 'queue', 'tool'],
    watch: 'address',
  },
  'claude-agent-acp': {
    adapter: 'acp',
    recordings: [
      'claude-air-background',
      'claude-air-permission',
      'claude-air-race',
      'claude-air-subagent',
      'claude-three-tasks',
    ],
    watch: 'child',
    hasBridge: true,
  },
  'codex-acp': {
    adapter: 'acp',
    recordings: ['codex-acp-background', 'codex-acp-permission', 'codex-acp-tool'],
    watch: 'child',
    hasBridge: true,
  },
  gemini: { adapter: 'acp', recordings: ['gemini-background', 'gemini-permission', 'gemini-tool'], watch: 'child' },
  qwen: { adapter: 'acp', recordings: ['qwen-background', 'qwen-permission', 'qwen-tool'], watch: 'child' },
  agui: {
    adapter: 'agui',
    recordings: ['ambient-background', 'ambient-both-streams', 'ambient-question', 'copilotkit', 'mastra-tasks'],
    watch: 'address',
  },
  agentapi: { adapter: 'agentapi', recordings: ['acp', 'background', 'interrupted', 'permission'], watch: 'address' },
  http: { adapter: 'claude', recordings: ['3bg', 'bash-bg', 'perm', 'race'], watch: 'promise' },
} as const satisfies Record<string, LifeKind>;

export type KindName = keyof typeof LIFE_KINDS;

const READ = new Map<string, readonly RecordedLine[]>();

/** A recording's lines, with pauses capped at `mostMs`. */
export function linesOf(adapter: string, name: string, mostMs = 700): readonly RecordedLine[] {
  const key = `${adapter}/${name}`;
  const known = READ.get(key);
  if (known !== undefined) return known;
  let [at, before] = [0, 0];
  const lines = recordedLines(adapter === 'claude' ? '' : adapter, name).map((line) => {
    at += Math.min(Math.max(line.at - before, 0), mostMs);
    before = line.at;
    return { ...line, at };
  });
  READ.set(key, lines);
  return lines;
}

const AT_WORK = new Map<string, readonly number[]>();

/** Line counts after which the agent is busy. */
export function busyLineCounts(adapter: string, name: string): readonly number[] {
  const known = AT_WORK.get(`${adapter}/${name}`);
  if (known !== undefined) return known;
  const reader = RECORDED_KINDS[adapter]?.newReader({ newRunId: () => crypto.randomUUID(), sessionOf: (id) => id });
  const open = new Map<string, OpenWork>();
  const found = linesOf(adapter, name).flatMap((line, index) => {
    for (const one of reader?.read(line, line.at) ?? []) {
      open.set(one.sessionId, workAfter(open.get(one.sessionId) ?? NOTHING_OPEN, [one]));
    }
    return [...open.values()].every(isNothing) ? [] : [index + 1];
  });
  AT_WORK.set(`${adapter}/${name}`, found);
  return found;
}

/** Events of a terminal whose process is killed, as emitted by its mirror, with times in milliseconds. */
interface TerminalLife {
  /** Events before the death; 0 is the case's last step. */
  lines: readonly { ms: number; events: AgUiEvent[] }[];
  /** Events after the detection of the death; 0 is that moment. */
  ends: readonly { ms: number; events: AgUiEvent[] }[];
}

const FOLDER = fileURLToPath(new URL('../../fixtures/cases/', import.meta.url));
const CASES = readdirSync(FOLDER)
  .map((name) => join(FOLDER, name, 'steps.jsonl'))
  .filter((file) => existsSync(file))
  .sort();
/** Number of cut points per case. Playing writes real files, so each is played once. */
const PLACES = 6;
/** Longer than a mirror waits for final lines. */
const AFTER_MS = 8_000;
const PLAYED = new Map<string, Promise<TerminalLife>>();

/**
 * @param which selects the case; any number
 * @param part of the case to play, from 0 to 1
 * @param quietMs between the last line and the death
 */
export function terminalLife(which: number, part: number, quietMs: number): Promise<TerminalLife> {
  const place = Math.ceil(part * PLACES);
  const key = `${which % CASES.length} ${place} ${quietMs}`;
  const known = PLAYED.get(key) ?? play(CASES[which % CASES.length] ?? '', place / PLACES, quietMs);
  PLAYED.set(key, known);
  return known;
}

async function play(file: string, part: number, quietMs: number): Promise<TerminalLife> {
  const home = await mkdtemp(join(tmpdir(), 'interlude-test-'));
  const clock = { now: Date.parse('2026-11-28T12:00:00Z') };
  let emitted: { ms: number; events: AgUiEvent[] }[] = [];
  try {
    const terminal = new SteppedTerminal(home, clock, (outputs) => {
      if (outputs.length > 0) emitted.push({ ms: clock.now, events: outputs.map(({ event }) => event) });
    });
    const steps = stepsIn(file);
    for (const step of steps.slice(0, Math.max(1, Math.ceil(steps.length * part)))) await terminal.does(step);
    const endedAt = clock.now;
    await terminal.pass(quietMs);
    const lines = emitted.map(({ ms, events }) => ({ ms: ms - endedAt, events }));
    emitted = [];
    const goneAt = clock.now;
    terminal.mirror.died();
    await terminal.pass(AFTER_MS);
    return { lines, ends: emitted.map(({ ms, events }) => ({ ms: ms - goneAt, events })) };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}
