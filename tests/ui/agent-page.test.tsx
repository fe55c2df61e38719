// @vitest-environment happy-dom
import { cleanup, render, screen, within } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { AgentPage } from '@/components/agents/agent-page';
import { LiveProvider } from '@/components/live/live-provider';
import { NowProvider } from '@/components/ui/now';
import type { AgentDetail } from '@/lib/protocol/read-models';
import { anAgent, anInsight } from './rows';
import { scriptedFetch } from './scripted-stream';

beforeEach(() => {
  vi.stubGlobal('fetch', scriptedFetch().fetch);
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function show(detail: Partial<AgentDetail>) {
  const initial: AgentDetail = {
    agent: anAgent(),
    sessions: [],
    nextSessions: null,
    producers: [],
    producerCount: 0,
    quarantine: [],
    parked: [],
    insights: [],
    position: '1',
    ...detail,
  };
  render(
    <NowProvider renderedAt={Date.now()}>
      <LiveProvider>
        <AgentPage initial={initial} />
      </LiveProvider>
    </NowProvider>,
  );
}
const section = (name: RegExp) => screen.getByRole('heading', { name }).closest('section') as HTMLElement;

it('lists signals apart from failures, with direction marks made visible', () => {
  const failure = { signal: 'outbox_poisoned', value: 7, outcome: 'failed', source: 'outbox', detail: 'too large' };
  show({
    agent: anAgent({ insightCount: 1, otherFailureCount: 1 }),
    insights: [
      anInsight({ position: '3', ...failure }),
      anInsight({ position: '2', signal: 'context_ratio', value: 0.4, source: 'context', isFailure: false }),
      anInsight({ position: '1', signal: '\u202Eevil\n', detail: '\u202Etxet', source: '', isFailure: false }),
    ],
  });
  const signals = section(/^Signals/);
  expect(within(signals).getAllByRole('listitem')).toHaveLength(2);
  expect(signals.textContent).toContain('context_ratio 0.4');
  expect(signals.textContent).not.toMatch(/\u202E/);
  const failures = section(/^Failures/);
  expect(within(failures).getAllByRole('listitem')).toHaveLength(1);
  expect(failures.textContent).toContain('outbox_poisoned 7');
  expect(failures.textContent).toContain('too large');
});

it('shows no failures where an agent has signals only', () => {
  show({ insights: [anInsight({ signal: 'context_ratio', value: 0.4, source: 'context', isFailure: false })] });
  expect(screen.queryByRole('heading', { name: /^Failures/ })).toBeNull();
});

it('says which versions of runner, protocol and provider an agent has, with direction marks made visible', () => {
  const versions = { runner: '0.1.0', protocol: '1', provider: 'Claude \u202ECode 2.1.329' };
  show({ agent: anAgent({ status: { versions } }) });
  const runner = section(/^Runner/);
  expect(runner.textContent).toContain('runner 0.1.0 · protocol 1 · Claude');
  expect(runner.textContent).not.toMatch(/\u202E/);
});
