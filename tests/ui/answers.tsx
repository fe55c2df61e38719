import { cleanup } from '@testing-library/react';
import { type ReactNode, useState } from 'react';
import { afterEach, beforeEach, vi } from 'vitest';
import { ActionStore, ActionsProvider } from '@/components/live/actions';
import { RequestBoardProvider } from '@/components/requests/request-board';
import { NowProvider } from '@/components/ui/clock';
import { layOut } from './laid-out';

/** A page around request cards. */
export function Around({ children }: { children: ReactNode }) {
  const [store] = useState(() => new ActionStore('s', () => {}));
  return (
    <NowProvider renderedAt={Date.now()}>
      <ActionsProvider store={store}>
        <RequestBoardProvider>{children}</RequestBoardProvider>
      </ActionsProvider>
    </NowProvider>
  );
}

/**
 * Gives every test of the file a layout, a fake clock, and a server that accepts each answer.
 *
 * @returns the bodies that the current test has posted, each with its request
 */
export function acceptAnswers(): unknown[] {
  const posted: unknown[] = [];
  beforeEach(() => {
    vi.useFakeTimers();
    layOut();
    posted.length = 0;
    vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
      const { clientId: _, ...body } = JSON.parse(String(init.body));
      posted.push({ request: url.split('/').at(-1), ...body });
      return Response.json({ commandId: 'c', state: 'queued' }, { status: 202 });
    });
  });
  afterEach(() => {
    cleanup();
    vi.useRealTimers();
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
  });
  return posted;
}
