'use client';

import { useEffect } from 'react';
import { clearStorage } from '@/components/ui/browser-storage';

/** Clears browser storage where `Clear-Site-Data` doesn't work: on plain http, or below a base path. */
export function ClearStorage(): null {
  useEffect(clearStorage, []);
  return null;
}
