// Views of the site, as addresses name them.

export const TABS = ["leaderboards", "curves", "environments", "compare"];
