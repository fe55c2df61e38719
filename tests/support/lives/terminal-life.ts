import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { SteppedTerminal, stepsIn } from '../play-case';

/** What a mirror tells of a terminal whose process is killed, each with its time in milliseconds. */
export interface PlayedTerminal {
  /** Before its death. */
  lines: readonly { ms: number; events: AgUiEvent[] }[];
  /** After its runner has found that the process is gone. */
  ends: readonly { ms: number; events: AgUiEvent[] }[];
}

const FOLDER = fileURLToPath(new URL('../../fixtures/cases/', import.meta.url));
const CASES = readdirSync(FOLDER)
  .map((name) => join(FOLDER, name, 'steps.jsonl'))
  .filter((file) => existsSync(file))
  .sort();
/** Places at which a case is cut: a terminal is followed in real files, so what was played once is kept. */
const PLACES = 6;
/** How long its end is watched for what it still tells. */
const AFTER_MS = 8_000;
const PLAYED = new Map<string, Promise<PlayedTerminal>>();

/**
 * @param which case, by any number
 * @param part of it that is lived, from 0 to 1
 * @param quietMs between the last line and the death
 */
export function playedTerminal(which: number, part: number, quietMs: number): Promise<PlayedTerminal> {
  const place = Math.ceil(part * PLACES);
  const key = `${which % CASES.length} ${place} ${quietMs}`;
  const known = PLAYED.get(key) ?? play(CASES[which % CASES.length] ?? '', place / PLACES, quietMs);
  PLAYED.set(key, known);
  return known;
}

async function play(file: string, part: number, quietMs: number): Promise<PlayedTerminal> {
  const home = await mkdtemp(join(tmpdir(), 'interlude-test-'));
  const clock = { now: Date.parse('2026-11-28T12:00:00Z') };
  let told: { ms: number; events: AgUiEvent[] }[] = [];
  try {
    const terminal = new SteppedTerminal(home, clock, (outputs) => {
      if (outputs.length > 0) told.push({ ms: clock.now, events: outputs.map(({ event }) => event) });
    });
    const steps = stepsIn(file);
    for (const step of steps.slice(0, Math.max(1, Math.ceil(steps.length * part)))) await terminal.does(step);
    const endedAt = clock.now;
    await terminal.pass(quietMs);
    const lines = told.map(({ ms, events }) => ({ ms: ms - endedAt, events }));
    told = [];
    const goneAt = clock.now;
    terminal.mirror.died();
    await terminal.pass(AFTER_MS);
    return { lines, ends: told.map(({ ms, events }) => ({ ms: ms - goneAt, events })) };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}
