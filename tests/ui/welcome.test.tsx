// @vitest-environment happy-dom
import { act, cleanup, render, screen, within } from '@testing-library/react';
import type { AppRouterInstance } from 'next/dist/shared/lib/app-router-context.shared-runtime';
import { AppRouterContext } from 'next/dist/shared/lib/app-router-context.shared-runtime';
import { afterEach, expect, it, vi } from 'vitest';
import { Welcome, type WelcomePlace } from '@/app/(console)/welcome';
import { FleetStore } from '@/components/live/fleet-store';
import { FleetContext } from '@/components/live/use-fleet';
import { someCounts } from './rows';

afterEach(cleanup);

const LOCAL: WelcomePlace = {
  folder: '/srv/interlude',
  setting: '',
  token: '$(cat .interlude/runner-token)',
  recording: 'run.jsonl',
  isLocal: true,
  mayConnect: true,
  found: [],
};
const REMOTE: WelcomePlace = { ...LOCAL, isLocal: false, found: null };

function shown(place: WelcomePlace, agentsWithoutSessions = 0) {
  const fleet = new FleetStore();
  const counts = someCounts();
  fleet.putCounts({ ...counts, agentStates: { ...counts.agentStates, none: agentsWithoutSessions } });
  const refresh = vi.fn();
  const router = { refresh } as unknown as AppRouterInstance;
  render(
    <AppRouterContext value={router}>
      <FleetContext value={{ fleet, first: fleet }}>
        <Welcome place={place} />
      </FleetContext>
    </AppRouterContext>,
  );
  return refresh;
}
const region = (title: string) =>
  screen.getByRole('heading', { name: title, level: 3 }).closest('section') as HTMLElement;
const commandsIn = (part: HTMLElement) => [...part.querySelectorAll('code')].map(({ textContent }) => textContent);

it('offers one command for each agent on this machine, and folds the others with links to install them', () => {
  shown({
    ...LOCAL,
    found: [
      { id: 'codex', at: '/usr/bin/codex' },
      { id: 'gemini', at: '/opt/gemini' },
    ],
  });
  const found = region('Found on the machine that runs Interlude');
  expect(commandsIn(found)).toEqual([
    'cd /srv/interlude &&\nnpx interlude runner codex',
    'cd /srv/interlude &&\nnpx interlude runner acp -- gemini --acp',
  ]);
  expect(within(found).getByText('/opt/gemini')).toBeTruthy();
  const others = screen.getByText('Connect another agent').closest('details') as HTMLDetailsElement;
  expect(others.open).toBe(false);
  expect(commandsIn(others).join()).not.toMatch(/runner codex|gemini --acp/);
  expect(others.querySelector('a[href="https://opencode.ai/docs"]')?.getAttribute('aria-label')).toBe(
    'How to install it: OpenCode',
  );
});

it('offers to connect an agent first on an empty machine', () => {
  shown(LOCAL);
  expect(screen.queryByText('Found on the machine that runs Interlude')).toBeNull();
  expect(commandsIn(region('Or watch a demo fleet'))).toEqual(['cd /srv/interlude &&\nnpx interlude demo']);
  expect((screen.getByText('Connect an agent').closest('details') as HTMLDetailsElement).open).toBe(true);
  expect(screen.getByRole('link', { name: 'How Interlude works' })).toBeTruthy();
});

it('shows commands with the address and a token file for agents on other machines', () => {
  shown(REMOTE);
  expect(screen.getByRole('link', { name: 'Create a runner’s token' })).toBeTruthy();
  const connect = screen.getByText('Connect an agent').closest('details') as HTMLDetailsElement;
  expect(connect.open).toBe(true);
  const prefix = `INTERLUDE_URL=${location.origin} INTERLUDE_TOKEN_FILE=./runner-token npx interlude-runner`;
  expect(commandsIn(connect)).toContain(`${prefix} codex`);
  expect(commandsIn(connect)).toContain(`${prefix} hooks install &&\n${prefix} hooks`);
});

it('shows no command to a reader who can’t create a token', () => {
  shown({ ...REMOTE, mayConnect: false });
  expect(document.querySelector('code')).toBeNull();
  expect(screen.getByText(/Ask an admin to connect one/)).toBeTruthy();
});

it('searches again when the reader returns to the tab', () => {
  const refresh = shown(LOCAL);
  act(() => void window.dispatchEvent(new Event('focus')));
  expect(refresh).toHaveBeenCalledOnce();
});

it('shows an agent that has connected before its first session', () => {
  shown(LOCAL);
  expect(screen.getByRole('status').textContent).toContain('Waiting for the first session');
  cleanup();
  shown(LOCAL, 1);
  expect(screen.getByRole('status').textContent).toMatch(/^1 agent connected\. Give an agent a task/);
  expect(screen.getByRole('link', { name: '1 agent connected' }).getAttribute('href')).toBe('/agents');
});
