'use client';

import { type ReactNode, useEffect, useState } from 'react';
import { isSuperseded, person, storeAs } from '@/components/ui/browser-storage';
import { leavePage } from '@/components/ui/leave-page';

const isServer = typeof window === 'undefined';

/**
 * Ties the page to the person it was rendered for: what it stores and sends is theirs. It leaves when they sign out, or
 * another person signs in, in any tab.
 *
 * @param id as `GET /me` says it
 */
export function PagePerson({ id, children }: { id: string; children: ReactNode }) {
  // Before anything below reads what is stored.
  useState(() => {
    if (!isServer && person.id === null) storeAs(id);
  });
  useEffect(() => {
    // The server rendered this part of the page anew, for another person.
    if (id !== person.id) leavePage();
  }, [id]);
  useEffect(() => {
    // A page that stopped is on its way to another one already: to reload it would keep it.
    const look = () => {
      if (!person.hasLeft && isSuperseded()) leavePage();
    };
    const onShow = ({ persisted }: PageTransitionEvent) => {
      if (persisted && isSuperseded()) leavePage();
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
  return children;
}
