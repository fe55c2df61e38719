'use client';

import { createContext, type ReactNode, useContext, useEffect, useState } from 'react';
import { claimStorage, hasPageEnded, isSuperseded, leavePage, personId } from '@/components/ui/browser-storage';

const PersonContext = createContext<string | null>(null);

const isServer = typeof window === 'undefined';

/**
 * Binds the page to the person it was rendered for, for storage and requests. Reloads the page when they sign out or
 * another person signs in, in any tab.
 *
 * @param id from `GET /me`
 */
export function PagePerson({ id, children }: { id: string; children: ReactNode }) {
  // Runs before descendants read from storage.
  useState(() => {
    if (!isServer && personId() === null) claimStorage(id);
  });
  useEffect(() => {
    // The server rendered the page for another person.
    if (id !== personId()) leavePage();
  }, [id]);
  useEffect(() => {
    // A stopped page is already navigating; a reload would cancel that.
    const look = () => {
      if (!hasPageEnded() && isSuperseded()) leavePage();
    };
    const onShow = ({ persisted }: PageTransitionEvent) => {
      if (persisted && (hasPageEnded() || isSuperseded())) leavePage();
    };
    look();
    // A frozen tab gets no storage events: it looks when it is shown again.
    addEventListener('storage', look);
    addEventListener('pageshow', onShow);
    document.addEventListener('visibilitychange', look);
    return () => {
      removeEventListener('storage', look);
      removeEventListener('pageshow', onShow);
      document.removeEventListener('visibilitychange', look);
    };
  }, []);
  return <PersonContext value={id}>{children}</PersonContext>;
}

/** The person of this page, by the `id` of `GET /me`; null in an embed. */
export function usePagePerson(): string | null {
  return useContext(PersonContext);
}
