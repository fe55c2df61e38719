'use client';

import { createContext, type ReactNode, useContext, useEffect, useState } from 'react';
import { claimStorage, hasPageEnded, isSuperseded, leavePage, personId } from '@/components/ui/browser-storage';

const PersonContext = createContext<string | null>(null);

const isServer = typeof window === 'undefined';

/**
 * Binds the page's storage and requests to the user it was rendered for. Reloads the page when that user signs out or
 * another user signs in, in any tab.
 *
 * @param id from `GET /me`
 */
export function PagePerson({ id, children }: { id: string; children: ReactNode }) {
  // Runs before descendants read from storage.
  useState(() => {
    if (!isServer && personId() === null) claimStorage(id);
  });
  useEffect(() => {
    // The server rendered the page for another user.
    if (id !== personId()) leavePage();
  }, [id]);
  useEffect(() => {
    // A stopped page is already navigating; a reload would cancel that.
    const check = () => {
      if (!hasPageEnded() && isSuperseded()) leavePage();
    };
    const onShow = ({ persisted }: PageTransitionEvent) => {
      if (persisted && (hasPageEnded() || isSuperseded())) leavePage();
    };
    check();
    // A frozen tab gets no storage events, so it checks when it is shown again.
    addEventListener('storage', check);
    addEventListener('pageshow', onShow);
    document.addEventListener('visibilitychange', check);
    return () => {
      removeEventListener('storage', check);
      removeEventListener('pageshow', onShow);
      document.removeEventListener('visibilitychange', check);
    };
  }, []);
  return <PersonContext value={id}>{children}</PersonContext>;
}

/** The user of this page, as the `id` from `GET /me`; null in an embed. */
export function usePagePerson(): string | null {
  return useContext(PersonContext);
}
