import java.nio.file.Path;
import java.util.List;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** One OpenSearch node for the tests: OpenSearchServer PORT FOLDER. */
public class OpenSearchServer extends Node {
    OpenSearchServer(Settings settings) {
        super(new Environment(settings, Path.of(settings.get("path.home"), "config")),
            List.of(Netty4Plugin.class, ReindexPlugin.class, CommonAnalysisPlugin.class), true);
    }

    public static void main(String[] args) throws Exception {
        Settings settings = Settings.builder()
            .put("path.home", args[1])
            .put("http.port", args[0])
            .put("http.host", "127.0.0.1")
            .put("transport.host", "127.0.0.1")
            .put("transport.port", "0")
            .put("http.type", "netty4")
            .put("transport.type", "netty4")
            .put("cluster.name", "jiyi-test")
            .put("node.name", "test")
            .put("discovery.type", "single-node")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        new OpenSearchServer(settings).start();
        Thread.currentThread().join();
    }
}
