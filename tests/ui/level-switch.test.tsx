// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { LevelMenu } from '@/components/logs/level-menu';
import { LevelSwitch } from '@/components/logs/level-switch';
import { NowProvider } from '@/components/ui/clock';
import { anAgent } from './rows';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

test('moves the focus with arrow keys without setting a level, and sets the pressed one', async () => {
  const sent: [string, unknown][] = [];
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    sent.push([`${init.method} ${url}`, JSON.parse(String(init.body))]);
    return Response.json({}, { status: 202 });
  });
  const logLevel = { level: 'info', since: 1_000, by: null, until: null, base: 'info', desired: null } as const;
  render(
    <NowProvider renderedAt={2_000}>
      <LevelSwitch agent={anAgent({ logLevel })} />
    </NowProvider>,
  );
  expect(screen.getAllByRole('radio').map(({ tabIndex }) => tabIndex)).toEqual([-1, 0, -1, -1, -1]);
  screen.getByText('info').focus();
  for (const [key, reached] of [
    ['ArrowRight', 'warn'],
    ['ArrowRight', 'error'],
    ['ArrowLeft', 'warn'],
    ['End', 'fatal'],
    ['ArrowRight', 'debug'],
    ['ArrowUp', 'fatal'],
    ['Home', 'debug'],
  ] as const) {
    fireEvent.keyDown(document.activeElement as Element, { key });
    expect(document.activeElement?.textContent).toBe(reached);
  }
  expect(sent).toEqual([]);
  fireEvent.click(screen.getByText('warn'));
  await screen.findByText('requesting warn…');
  expect(sent).toEqual([['PUT /api/v1/agents/agent-1/log-level', { level: 'warn' }]]);
});

test('names the level that the runner writes, and the one it was asked for', async () => {
  const logLevel = { level: 'info', since: 1_000, by: null, until: null, base: 'info', desired: null } as const;
  const desired = {
    level: 'debug',
    state: 'requested',
    requestedAt: 1_500,
    requestedBy: 'o',
    expiresAt: null,
    reason: null,
  } as const;
  const menu = (agent: ReturnType<typeof anAgent>) => (
    <NowProvider renderedAt={2_000}>
      <LevelMenu agent={agent} />
    </NowProvider>
  );
  const { rerender } = render(menu(anAgent({ logLevel })));
  fireEvent.click(screen.getByRole('button', { name: 'Runner writes: info' }));
  await screen.findByRole('radiogroup', { name: 'Runner log level' });
  rerender(menu(anAgent({ logLevel: { ...logLevel, desired } })));
  expect(screen.getByLabelText('Runner writes: info → debug')).toBeDefined();
  rerender(menu(anAgent({ logLevel: { ...logLevel, desired: { ...desired, state: 'refused' } } })));
  expect(screen.getByLabelText('Runner writes: info')).toBeDefined();
});
