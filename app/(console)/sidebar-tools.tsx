'use client';

import { CircleHelp, PanelLeft } from 'lucide';
import { useStored } from '@/components/ui/browser-storage';
import { Icon } from '@/components/ui/icon';
import { Link } from '@/components/ui/link';
import { ShortcutHelp } from '@/components/ui/shortcuts/shortcut-help';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { SIDEBAR_KEY } from '@/components/ui/storage-key';
import { ThemeToggle } from '@/components/ui/theme-toggle';

/** Theme, keyboard shortcuts, help, and the button that collapses the sidebar. */
export function SidebarTools() {
  return (
    <>
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
