import type { StatusRecord } from '@interlude/runner/host/status-report';
import { ReportSelector } from '@interlude/runner/host/status-report';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ingest, inProcessTarget } from '../../support/ingest-target';

/** Sessions that a companion reports; idle ones must not count as changed forever. */
const EVERY_MS = 10_000;
const T0 = 1_795_170_000_000;

const atRest = { state: 'idle', openTurnId: null, tasks: [], requests: [] };
const of = (sessionId: string, said: object = {}): StatusRecord => {
  const status = { kind: 'hooks', everyMs: EVERY_MS, ...atRest, ...said };
  return { kind: 'status', agentId: 'terminals', sessionId, occurredAt: T0, status };
};
const three = (said: object = {}) => [of('a'), of('b', said), of('c')];

describe('a report', () => {
  let now = 0;
  const picks = (reports: ReportSelector, ms: number, sessions: StatusRecord[]) => {
    now += ms;
    return reports.pick(sessions, now).map(({ sessionId }) => sessionId);
  };
  const told = () => {
    const reports = new ReportSelector();
    picks(reports, EVERY_MS, three());
    return reports;
  };

  it('covers only the last of idle sessions, and all of them once a minute', () => {
    const reports = new ReportSelector();
    expect(picks(reports, EVERY_MS, three())).toEqual(['a', 'b', 'c']);
    for (let minute = 0; minute < 3; minute++) {
      for (let round = 0; round < 5; round++) expect(picks(reports, EVERY_MS, three())).toEqual(['c']);
      expect(picks(reports, EVERY_MS, three())).toEqual(['a', 'b', 'c']);
    }
  });

  it('covers a changed session and then repeats it', () => {
    const reports = told();
    expect(picks(reports, 100, three({ state: 'compacting' }))).toEqual(['b']);
    expect(picks(reports, EVERY_MS, three({ state: 'compacting' }))).toEqual(['b']);
    expect(picks(reports, 100, three())).toEqual(['b']);
    expect(picks(reports, EVERY_MS, three())).toEqual(['b']);
  });

  it.each([
    ['an open turn', { openTurnId: 't' }],
    ['a task', { tasks: [{ id: 't', description: '' }] }],
    ['a request', { requests: ['q'] }],
  ])('always covers a session with %s', (_what, said) => {
    const reports = told();
    const sessions = [of('a', said), of('b', said), of('c')];
    for (let round = 0; round < 4; round++) expect(picks(reports, EVERY_MS, sessions)).toEqual(['a', 'b']);
    expect(picks(reports, EVERY_MS, three())).toEqual(['a', 'b']);
    expect(picks(reports, EVERY_MS, three())).toEqual(['a', 'b', 'c']);
    expect(picks(reports, EVERY_MS, three())).toEqual(['c']);
  });

  it('covers all sessions after a gap', () => {
    const reports = told();
    reports.forget();
    expect(picks(reports, 100, three())).toEqual(['a', 'b', 'c']);
    expect(picks(reports, EVERY_MS, three())).toEqual(['c']);
    expect(picks(reports, 15_001, three())).toEqual(['a', 'b', 'c']);
  });

  it('repeats another session when the last reported one is gone', () => {
    const reports = told();
    const left = [of('a'), of('b')];
    for (let round = 0; round < 3; round++) expect(picks(reports, EVERY_MS, left)).toEqual(['b']);
    expect(picks(reports, EVERY_MS, [])).toEqual([]);
    expect(picks(reports, EVERY_MS, left)).toEqual(['a', 'b']);
  });
});

it.each([1, 2, 5])('%i sessions at rest are written about once a minute', async (count) => {
  let now = T0;
  const target = await inProcessTarget(() => now);
  onTestFinished(() => target.close());
  const reports = new ReportSelector();
  const sessions = Array.from({ length: count }, (_, index) => of(`s${index}`, { pid: index }));
  let seq = 0;
  let before = '';
  let moved = 0;
  for (let round = 0; round < 6 * 10; round++) {
    now += EVERY_MS;
    const picked = reports.pick(sessions, now);
    const records = picked.map((record) => ({ ...record, seq: ++seq, occurredAt: now }));
    const { position } = await ingest(target, records);
    if (position !== before) moved += 1;
    before = position;
  }
  expect(moved).toBeGreaterThan(0);
  expect(moved).toBeLessThanOrEqual(12);
});
