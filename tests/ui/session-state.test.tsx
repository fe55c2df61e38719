// @vitest-environment happy-dom

import { stateAt } from '@interlude/protocol/projections/resolve-state';
import type { SessionDelivery, SessionSummary } from '@interlude/protocol/read-models';
import { noSessions } from '@interlude/protocol/session-states';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ALL, FleetStore } from '@/components/live/fleet-store';
import { StateClock } from '@/components/live/live-provider';
import { StateWhy } from '@/components/sessions/state-why';
import { NowProvider } from '@/components/ui/clock';
import { aSession, someCounts } from './rows';

/** Session states as time passes, and their evidence. */
const NOW = 1_795_170_000_000;
const session = { observedAt: NOW - 60_000, turnId: null, value: null };

/** Reports working, but its turn ended eight seconds ago: it is idle in two seconds. */
function resting(fields: Partial<SessionSummary> = {}): SessionSummary {
  const turn = { observedAt: NOW - 8_000, turnId: 'r1', value: { state: 'finished' as const } };
  const value = { state: 'working' as const, summary: null, link: null };
  const report = { observedAt: NOW - 60_000, turnId: 'r', value };
  return stateAt(aSession({ observations: { session, turn, report }, ...fields }), NOW);
}

function fleetOf(...sessions: SessionSummary[]): FleetStore {
  const fleet = new FleetStore();
  const counts = noSessions();
  for (const { state } of sessions) counts[state] += 1;
  fleet.putSessions({ sessions, position: '9', hasMore: true, next: 'idle.5.b', counts });
  return fleet;
}

afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('as time passes a page', () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.setSystemTime(NOW);
  });

  it.each([0, -3_600_000, 600_000])(
    'changes the states that are due, by a clock that is %i ms ahead',
    async (aheadMs) => {
      vi.setSystemTime(NOW + aheadMs);
      const fleet = fleetOf(resting());
      render(
        <NowProvider renderedAt={NOW}>
          <StateClock fleet={fleet} />
        </NowProvider>,
      );
      expect(fleet.sessions.get('s')?.state).toBe('working');
      await act(() => vi.advanceTimersByTimeAsync(1_000));
      expect(fleet.sessions.get('s')?.state).toBe('working');
      await act(() => vi.advanceTimersByTimeAsync(2_000));
      await vi.waitFor(() => expect(fleet.sessions.get('s')?.state).toBe('idle'));
      expect(fleet.stateDueAt).toBeNull();
    },
  );

  it('counts a session in the server’s state until the server reports another', () => {
    const fleet = fleetOf(resting());
    fleet.putCounts(someCounts({ position: '11' }));
    fleet.passTime(NOW + 2_000, stateAt);
    expect(fleet.sessions.list(ALL)?.rows.map(({ state }) => state)).toEqual(['idle']);
    expect(fleet.countsAreOld).toBe(false);
    const updated = { ...stateAt(resting(), NOW + 2_100), updatedPosition: '12' };
    fleet.applyFrames([{ event: 'session', id: '12', data: updated }]);
    expect(fleet.countsAreOld).toBe(true);
  });

  it('leaves sessions that are not due unchanged', () => {
    const fleet = fleetOf(resting(), aSession({ id: 'other' }));
    const other = fleet.sessions.get('other');
    fleet.passTime(NOW + 2_000, stateAt);
    expect(fleet.sessions.get('other')).toBe(other);
  });
});

const producer = {
  id: 'p1',
  epoch: 1,
  agentId: 'agent-1',
  lastSeq: 1_812,
  accepted: 1_812,
  duplicates: 0,
  gaps: 0,
  rejected: 0,
  lost: 0,
  clockSkewMs: null,
  lastSeenAt: NOW,
};
const whole: SessionDelivery = {
  position: '9',
  producers: [producer],
  missing: [],
  lostCount: 0,
  quarantinedCount: 0,
  unnamedCount: 0,
  waiting: null,
};

/** @param delivery the server's response */
function renderWhy(session: SessionSummary, delivery = whole): void {
  vi.stubGlobal('fetch', async () => Response.json(delivery));
  render(
    <QueryClientProvider client={new QueryClient()}>
      <NowProvider renderedAt={NOW}>
        <StateWhy session={session} />
      </NowProvider>
    </QueryClientProvider>,
  );
}

describe('why a session is in its state', () => {
  const shown = () =>
    stateAt(
      aSession({
        startedAt: NOW - 86_400_000,
        lastHeardAt: NOW - 4 * 60_000,
        observations: {
          session,
          // received late
          turn: {
            observedAt: NOW - 5 * 60_000,
            occurredAt: NOW - 3_600_000,
            turnId: 'r2',
            value: { state: 'running' },
          },
          report: {
            observedAt: NOW - 9 * 60_000,
            turnId: 'r1',
            value: { state: 'complete', summary: 'All **green**', link: 'https://example.org/pr/7' },
          },
        },
        away: { since: NOW - 3 * 60_000, lastHeardAt: NOW - 4 * 60_000, agentGoesOn: false },
      }),
      NOW,
    );

  it('shows its reason and each observation with its age on a press', async () => {
    vi.setSystemTime(NOW);
    renderWhy(shown());
    fireEvent.click(screen.getByRole('button', { name: 'Why this state?' }));
    const dialog = await screen.findByRole('dialog', { name: 'Why this state' });
    expect(dialog.textContent).toContain('Unknown (last: working)');
    expect(dialog.textContent).toContain('because it has stopped sending signals.');
    const rows = within(dialog).getAllByRole('row').slice(1);
    expect(rows.map((row) => row.textContent)).toEqual([
      expect.stringMatching(/^Connection \(decided\)The runner has disconnected4 min/),
      expect.stringMatching(/^Self-reportReported complete, “All \*\*green\*\*” https:\/\/example.org\/pr\/79 min/),
      expect.stringMatching(/^Last turnStill open1 h/),
      expect.stringMatching(/^First eventThe session began1 d/),
      expect.stringMatching(/^Last eventReceived from the agent4 min/),
    ]);
  });

  it('opens and closes with a key, and has the focus itself', async () => {
    renderWhy(shown());
    fireEvent.keyDown(document.body, { key: 'E' });
    const dialog = await screen.findByRole('dialog', { name: 'Why this state' });
    // Its first control explains a term.
    await vi.waitFor(() => expect(document.activeElement).toBe(dialog));
    fireEvent.keyDown(screen.getByRole('dialog'), { key: 'Escape' });
    await vi.waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  });

  it('renders no unsafe link from a report', async () => {
    const observations = {
      session,
      report: {
        observedAt: NOW,
        turnId: null,
        value: { state: 'idle' as const, summary: null, link: 'javascript:alert(1)' },
      },
    };
    renderWhy(stateAt(aSession({ observations }), NOW));
    fireEvent.click(screen.getByRole('button', { name: 'Why this state?' }));
    const dialog = await screen.findByRole('dialog');
    expect(within(dialog).queryByRole('link')).toBeNull();
  });

  it.each([
    ['is complete', whole, 'Complete to #1,812, nothing missing'],
    [
      'lacks records',
      {
        ...whole,
        missing: [
          { kind: 'quarantined' as const, position: '8', at: NOW, count: 1, seq: 7, reason: 'too large' },
          { kind: 'lost' as const, position: '4', at: NOW, count: 12, seq: null, reason: 'outbox-full' },
        ],
        lostCount: 12,
        quarantinedCount: 1,
      },
      'Complete to #1,812, 12 records lost and 1 rejected missing#7 rejected (just now): too large12 records lost (just now): outbox-full',
    ],
    [
      'may lack what names no session',
      { ...whole, unnamedCount: 3 },
      'Complete to #1,8123 rejected records from its outbox name no session and may belong to this one (show)',
    ],
    ['has more to come', { ...whole, waiting: { count: 3, at: NOW } }, '3 records not sent yet'],
  ])('shows a delivery that %s', async (_what, delivery, words) => {
    vi.setSystemTime(NOW);
    renderWhy(shown(), delivery);
    fireEvent.click(screen.getByRole('button', { name: 'Why this state?' }));
    const dialog = await screen.findByRole('dialog');
    await vi.waitFor(() => expect(dialog.textContent).toContain(words));
  });
});
