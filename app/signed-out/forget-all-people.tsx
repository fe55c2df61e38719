'use client';

import { useEffect } from 'react';
import { forgetAllPeople } from '@/components/ui/browser-storage';

/** Clears what the dashboard stored in this browser, where `Clear-Site-Data` does not: on plain http, or beneath a path. */
export function ForgetAllPeople(): null {
  useEffect(forgetAllPeople, []);
  return null;
}
