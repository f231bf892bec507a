// The pages, in the order of the menu; `key` follows g on the keyboard.
import { showAsk } from "./views/ask.js";
import { showChanges } from "./views/changes.js";
import { showGraph } from "./views/graph.js";
import { showImport } from "./views/import.js";
import { showJobs } from "./views/jobs.js";
import { showKeys } from "./views/keys.js";
import { showMaintenance } from "./views/maintenance.js";
import { showMemories } from "./views/memories.js";
import { showMetrics } from "./views/metrics.js";
import { showPeople } from "./views/people.js";
import { showProfile } from "./views/profile.js";
import { showReview } from "./views/review.js";
import { showSearch } from "./views/search.js";
import { showTimeline } from "./views/timeline.js";

export const VIEWS = [
  { name: "search", key: "s", show: showSearch },
  { name: "ask", key: "a", show: showAsk },
  { name: "memories", key: "m", show: showMemories },
  { name: "people", key: "n", show: showPeople },
  { name: "profile", key: "p", show: showProfile },
  { name: "timeline", key: "t", show: showTimeline, wide: true },
  { name: "graph", key: "r", show: showGraph, wide: true },
  { name: "changes", key: "l", show: showChanges, apart: true },
  { name: "review", key: "v", show: showReview },
  { name: "import", key: "i", show: showImport, apart: true },
  { name: "maintenance", key: "w", show: showMaintenance, wide: true },
  { name: "jobs", key: "j", show: showJobs },
  { name: "metrics", key: "c", show: showMetrics, wide: true },
  { name: "keys", key: "k", show: showKeys },
];
