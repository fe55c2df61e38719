'use client';

import { useEffect } from 'react';
import { clearStorage } from '@/components/ui/browser-storage';

/** Clears what the dashboard stored in this browser, where `Clear-Site-Data` does not: on plain http, or beneath a path. */
export function ClearStorage(): null {
  useEffect(clearStorage, []);
  return null;
}
