import java.nio.file.Path;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.Node;

/** One Elasticsearch node for the tests: ElasticsearchServer PORT FOLDER DISTRIBUTION. */
public class ElasticsearchServer {
    public static void main(String[] args) throws Exception {
        LogConfigurator.configureESLogging();
        Settings settings = Settings.builder()
            .put("path.home", args[2])
            .put("path.data", args[1] + "/data")
            .put("path.logs", args[1])
            .put("http.port", args[0])
            .put("http.host", "127.0.0.1")
            .put("transport.host", "127.0.0.1")
            .put("transport.port", "0")
            .put("cluster.name", "jiyi-test")
            .put("node.name", "test")
            .put("discovery.type", "single-node")
            .put("xpack.security.enabled", false)
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        new Node(new Environment(settings, Path.of(args[1], "config"))).start();
        Thread.currentThread().join();
    }
}
