'use client';

import { CircleHelp, PanelLeft } from 'lucide';
import { createPortal } from 'react-dom';
import { useStored } from '@/components/ui/browser-storage';
import { Icon } from '@/components/ui/icon';
import { Link } from '@/components/ui/link';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { ShortcutHelp } from '@/components/ui/shortcuts/shortcut-help';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { SIDEBAR_KEY, VIEWS_KEY } from '@/components/ui/storage-key';
import { ThemeToggle } from '@/components/ui/theme-toggle';
import { useStoredAnywhere } from '@/components/ui/use-stored-anywhere';

const viewsCode = new CodeOnDemand<object>(async () => (await import('@/components/agents/saved-views')).SavedViews);

/** Theme, keyboard shortcuts, help, the button that collapses the sidebar, and the saved views under “Agents”. */
export function SidebarTools() {
  const [views] = useStoredAnywhere(VIEWS_KEY);
  const place = document.getElementById('saved-views');
  const hasViews = views !== null && views !== '[]';
  // The hidden child clears `:empty`, which reserves the height.
  const shown = hasViews ? <OnDemand code={viewsCode} name="The saved views" props={{}} /> : <span hidden />;
  return (
    <>
      {place !== null && createPortal(shown, place)}
      <ThemeToggle className="tool" labelClassName="tip icons:tip-beside" />
      <ShortcutHelp className="tool pointer-coarse:hidden" labelClassName="tip icons:tip-beside" />
      <Link href="/help" className="tool">
        <Icon of={CircleHelp} size={16} strokeWidth={1.75} />
        <span className="tip icons:tip-beside">Help</span>
      </Link>
      <CollapseButton />
    </>
  );
}

/** A script in the layout applies the stored choice before the first paint. */
function CollapseButton() {
  const [stored, store] = useStored(SIDEBAR_KEY);
  const isCollapsed = stored === 'icons';
  const toggle = () => {
    const next = isCollapsed ? 'labels' : 'icons';
    store(next);
    document.documentElement.dataset.sidebar = next;
  };
  useShortcuts({ 'sidebar.toggle': () => matchMedia('(width >= 64rem)').matches && toggle() });
  return (
    <button type="button" onClick={toggle} className="tool ml-auto icons:ml-0">
      <Icon of={PanelLeft} size={16} strokeWidth={1.75} />
      <span className="tip icons:tip-beside right-0 left-auto">
        {isCollapsed ? 'Expand the sidebar' : 'Collapse the sidebar'}{' '}
        <span data-key="[" aria-hidden="true" className="key" />
      </span>
    </button>
  );
}
