// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { AgentBoard } from '@/components/agents/agent-board';
import { LiveProvider } from '@/components/live/live-provider';
import { CurrentCounts } from '@/components/live/use-counts';
import { NowProvider } from '@/components/ui/clock';
import { NextPage } from '../support/next-page';
import { anAgent, countsOf } from './rows';
import { scriptedFetch } from './scripted-stream';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it('sorts by every column, shown or not', () => {
  vi.stubGlobal('fetch', scriptedFetch().fetch);
  const agents = [anAgent({ id: 'a', owedCount: 1 }), anAgent({ id: 'b', owedCount: 3 }), anAgent({ id: 'c' })];
  render(
    <NextPage>
      <NowProvider renderedAt={Date.now()}>
        <LiveProvider>
          <CurrentCounts initial={countsOf({ agents })} />
          <AgentBoard initial={{ agents, position: '1', next: null, count: 3 }} />
        </LiveProvider>
      </NowProvider>
    </NextPage>,
  );
  const names = () => screen.getAllByRole('link').map(({ textContent }) => textContent);
  const sorts = screen.getByRole('combobox', { name: 'Sort by' });
  expect([...sorts.querySelectorAll('option')]).toHaveLength(10);
  fireEvent.change(sorts, { target: { value: 'owed' } });
  expect(names()).toEqual(['b', 'a', 'c']);
  fireEvent.click(screen.getByRole('button', { name: 'Descending: reverse order' }));
  expect(names()).toEqual(['c', 'a', 'b']);
});
