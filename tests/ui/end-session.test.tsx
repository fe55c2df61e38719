// @vitest-environment happy-dom

import type { SessionSummary } from '@interlude/protocol/read-models';
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RefusalsProvider } from '@/components/live/refusals';
import { ArrangePopover, EndSession } from '@/components/sessions/arrange-popover';
import { LivenessProvider } from '@/components/ui/liveness';
import { aSession } from './rows';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const button = (name: string) => screen.getByRole('button', { name });
const press = (name: string) => act(async () => fireEvent.click(button(name)));

describe('ending a session', () => {
  let asked: unknown[];
  let response: () => Response;
  const onEnded = vi.fn();
  beforeEach(() => {
    asked = [];
    onEnded.mockReset();
    response = () => Response.json({ commandId: 'c', state: 'queued' }, { status: 202 });
    vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
      asked.push([url, init.method]);
      return response();
    });
    render(<EndSession sessionId="s/1" onEnded={onEnded} />);
  });

  it('requests the end only after confirmation', async () => {
    await press('End session…');
    expect(asked).toEqual([]);
    expect(document.activeElement).toBe(button('End it now'));
    await press('End it now');
    expect(asked).toEqual([['/api/v1/sessions/s%2F1/end', 'POST']]);
    expect(onEnded).toHaveBeenCalledOnce();
  });

  it('can be cancelled, and keeps the focus', async () => {
    await press('End session…');
    await press('Keep it');
    expect(document.activeElement).toBe(button('End session…'));
    expect(asked).toEqual([]);
  });

  it('shows why the server refused, and can be retried', async () => {
    response = () => Response.json({ error: { code: 'conflict', message: 'The session has ended.' } }, { status: 409 });
    await press('End session…');
    await press('End it now');
    expect(screen.getByRole('alert').textContent).toBe('The session has ended.');
    expect(onEnded).not.toHaveBeenCalled();
    await press('End it now');
    expect(asked).toHaveLength(2);
  });
});

describe('the menu of a session', () => {
  const offers = (
    status: Record<string, unknown> | null,
    stoppedAt: number | null = null,
    isAway = false,
    session: Partial<SessionSummary> = {},
  ) => {
    const { unmount } = render(
      <LivenessProvider stoppedAt={stoppedAt} why="" isAway={isAway} lastSignalAt={null}>
        <RefusalsProvider status={status}>
          <ArrangePopover session={aSession(session)} button={{ current: null }} onClose={() => {}} />
        </RefusalsProvider>
      </LivenessProvider>,
    );
    const found = screen.queryByRole('button', { name: 'End session…' }) !== null;
    unmount();
    return found;
  };

  it('focuses no field until the reader wants to rename, and moves with arrow keys', async () => {
    render(
      <RefusalsProvider status={null}>
        <ArrangePopover session={aSession({ title: 'Errand' })} button={{ current: null }} onClose={() => {}} />
      </RefusalsProvider>,
    );
    const key = (name: string) => fireEvent.keyDown(document.activeElement as Element, { key: name });
    expect(screen.queryByRole('textbox')).toBeNull();
    button('Rename…').focus();
    key('ArrowDown');
    expect(document.activeElement).toBe(button('Pin'));
    key('ArrowUp');
    expect(document.activeElement).toBe(button('Rename…'));
    await press('Rename…');
    const field = screen.getByRole<HTMLInputElement>('textbox', { name: 'Name' });
    expect(document.activeElement).toBe(field);
    expect(field.value).toBe('Errand');
  });

  it('offers to end a session if its runner supports it', () => {
    expect(offers({ takes: ['message', 'session.end'] })).toBe(true);
  });

  it('doesn’t offer to end an ended session', () => {
    expect(offers({ takes: ['session.end'] }, null, false, { state: 'exited' })).toBe(false);
  });

  it.each([
    ['a runner that does not', { takes: ['message'] }, null, false],
    ['an older runner, which names nothing that it acts on', {}, null, false],
    ['a runner that is away', { takes: ['session.end'] }, null, true],
    ['a session without a signal', { takes: ['session.end'] }, 1_000, false],
  ] as [string, Record<string, unknown>, number | null, boolean][])(
    'does not offer that of %s',
    (_what, status, stoppedAt, isAway) => {
      expect(offers(status, stoppedAt, isAway)).toBe(false);
    },
  );
});
