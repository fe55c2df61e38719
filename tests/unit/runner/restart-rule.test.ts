import { RestartPolicy } from '@interlude/runner/host/agent-supervisor';
import { describe, expect, test } from 'vitest';

const MINUTE = 60_000;

describe('the restart policy', () => {
  test('waits half a second longer after each exit', () => {
    const rule = new RestartPolicy();
    const waits = [0, 20_000, 40_000].map((at) => rule.exited(at - 1_000, at));
    expect(waits).toEqual([500, 1_000, 1_500].map((waitMs) => ({ kind: 'restart', waitMs })));
  });

  test('waits ten seconds at most', () => {
    const rule = new RestartPolicy();
    let last = rule.exited(0, 0);
    for (let index = 1; index < 40; index += 1) last = rule.exited(index * 20_000 - 1_000, index * 20_000);
    expect(last).toEqual({ kind: 'restart', waitMs: 10_000 });
  });

  test('starts over after a process that lived for a minute', () => {
    const rule = new RestartPolicy();
    rule.exited(0, 1_000);
    rule.exited(2_000, 3_000);
    expect(rule.exited(4_000, 4_000 + MINUTE)).toEqual({ kind: 'restart', waitMs: 500 });
  });

  test('gives up after five exits within a minute', () => {
    const rapid = new RestartPolicy();
    const slow = new RestartPolicy();
    const ends = (rule: RestartPolicy, everyMs: number) =>
      [1, 2, 3, 4, 5].map((at) => rule.exited(at * everyMs - 10, at * everyMs).kind);
    expect(ends(rapid, 14_000)).toEqual(['restart', 'restart', 'restart', 'restart', 'give-up']);
    expect(ends(slow, 16_000)).not.toContain('give-up');
  });
});
