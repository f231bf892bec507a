// The pages, in the order of the menu; `key` follows g on the keyboard.
import { showGraph } from "./views/graph.js";
import { showImport } from "./views/import.js";
import { showJobs } from "./views/jobs.js";
import { showKeys } from "./views/keys.js";
import { showMemories } from "./views/memories.js";
import { showMetrics } from "./views/metrics.js";
import { showProfile } from "./views/profile.js";
import { showSearch } from "./views/search.js";
import { showTimeline } from "./views/timeline.js";

export const VIEWS = [
  { name: "search", key: "s", show: showSearch },
  { name: "memories", key: "m", show: showMemories },
  { name: "timeline", key: "t", show: showTimeline, wide: true },
  { name: "profile", key: "p", show: showProfile },
  { name: "graph", key: "r", show: showGraph, wide: true },
  { name: "import", key: "i", show: showImport, apart: true },
  { name: "jobs", key: "j", show: showJobs },
  { name: "metrics", key: "c", show: showMetrics, wide: true },
  { name: "keys", key: "k", show: showKeys },
];
