'use client';

import { CopyButton } from '@/components/ui/copy-button';

/** As `CopyButton`, of a text that the server knows. */
export function CopyText({ label, text }: { label: string; text: string }) {
  return <CopyButton label={label} text={() => text} className="mt-px shrink-0" />;
}
