'use client';

import type { ToolCallItem } from '@interlude/protocol/read-models';
import { useMemo, useState } from 'react';
import { Name } from '@/components/ui/name';
import { UnfoldButton } from '@/components/ui/unfold';
import { changedFiles, changesOf } from './changed-files';
import { diffOf } from './edits';
import { ToolDiff } from './tool-diff';

/** Files shown at first, and added with each asking. */
const STEP = 10;
/** A path is cut there by whoever told it. */
const PATH_CHARACTERS = 1_000;

/** What a call changed in files, each as what was removed and added. */
export function ToolChanges({ call }: { call: Pick<ToolCallItem, 'name' | 'args' | 'edits'> }) {
  const { name, args, edits } = call;
  const [most, setMost] = useState(STEP);
  const files = useMemo(() => {
    const changes = changesOf({ edits });
    return changes === null ? [] : changedFiles({ name, args, edits }, changes, diffOf(changes, edits as object));
  }, [name, args, edits]);
  const left = files.length - most;
  return (
    <>
      {files.slice(0, most).map(({ path, edits: own, diff }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a file may come twice, and none is ever moved
        <figure key={at}>
          <figcaption className="mb-0.5 font-mono text-2xs text-ink-3 [overflow-wrap:anywhere]">
            <Name text={path} most={PATH_CHARACTERS} />
          </figcaption>
          <ToolDiff edits={own} diff={diff} />
        </figure>
      ))}
      {left > 0 && (
        <UnfoldButton onPress={() => setMost(most + STEP)} className="text-2xs text-ink-2">
          Show {Math.min(left, STEP)} of {left.toLocaleString('en')} more files
        </UnfoldButton>
      )}
    </>
  );
}
