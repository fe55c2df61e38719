import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { SteppedTerminal, stepsIn } from '../play-case';

/** The events of a terminal whose process is killed, as its mirror gives them, with their times in milliseconds. */
export interface TerminalLife {
  /** Before the death; 0 is the last step of the case. */
  lines: readonly { ms: number; events: AgUiEvent[] }[];
  /** After the death was noticed; 0 is that moment. */
  ends: readonly { ms: number; events: AgUiEvent[] }[];
}

const FOLDER = fileURLToPath(new URL('../../fixtures/cases/', import.meta.url));
const CASES = readdirSync(FOLDER)
  .map((name) => join(FOLDER, name, 'steps.jsonl'))
  .filter((file) => existsSync(file))
  .sort();
/** Places at which a case is cut. Playing one writes real files, so each is played once. */
const PLACES = 6;
/** Longer than a mirror waits for last words. */
const AFTER_MS = 8_000;
const PLAYED = new Map<string, Promise<TerminalLife>>();

/**
 * @param which case, by any number
 * @param part of it that is lived, from 0 to 1
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
